"""Runs killed at random moments and started again: they end as if nothing had happened."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from runner.suite import Suite

from ..killed_runs import RUNS, Run

COUNT, EACH = 20, 5
"""Chains, and kills in each."""
ROOT = Path(__file__).resolve().parents[3]
TURN = ("train-ring", "train-makespan", "train-ring", "finetune", "measure",
        "train-ring", "train-makespan", "train-ring", "finetune", "tune")  # fmt: skip
LONGEST = 300.0
"""Seconds of one start."""
POLL_SECONDS = 0.02


def trial(index: int) -> str | None:
    """One whole run, and another that is killed `EACH` times."""
    name = TURN[index % len(TURN)]
    run, rng = RUNS[name], np.random.default_rng(index)
    with tempfile.TemporaryDirectory() as whole, tempfile.TemporaryDirectory() as cut:
        prepare(run, Path(whole))
        begun = time.monotonic()
        finish(run, Path(whole))
        seconds = time.monotonic() - begun
        wrong = list(chain(run, Path(whole), Path(cut), rng, seconds))
    return f"{name}: {'; '.join(wrong)}" if wrong else None


def chain(
    run: Run, whole: Path, cut: Path, rng: np.random.Generator, seconds: float
) -> Iterator[str]:
    """Kill until all kills are made, and then let it end; a run that was quicker starts afresh."""
    prepare(run, cut)
    kills, known = 0, run.kept(cut)
    while kills < EACH:
        if kill_in_time(run, cut, rng, seconds):
            kills += 1
            if lost := known - run.kept(cut):
                yield f"{len(lost)} of what was known before kill {kills} is lost"
            known = run.kept(cut)
        else:
            yield from differences(run, whole, cut)
            cut = cut / f"again-{kills}"
            cut.mkdir()
            prepare(run, cut)
            known = run.kept(cut)
    finish(run, cut)
    yield from differences(run, whole, cut)


def differences(run: Run, whole: Path, cut: Path) -> Iterator[str]:
    """What a killed run left otherwise than the whole one."""
    one, two = run.result(whole), run.result(cut)
    if one == two:
        return
    if isinstance(one, dict):
        yield f"{', '.join(name for name in one if one[name] != two[name])} differ"
    else:
        yield f"{two!r} instead of {one!r}"


def prepare(run: Run, folder: Path) -> None:
    """Write what lies in the folder before the run."""
    for name, text in run.files.items():
        (folder / name).write_text(text)
    run.prepare(folder)


def start(run: Run, folder: Path) -> subprocess.Popen[str]:
    """Start it in a session of its own, so that a kill reaches what it started, too."""
    path = os.pathsep.join((str(ROOT), str(folder)))
    return subprocess.Popen(
        [sys.executable, "-m", "go_rl", *run.arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def finish(run: Run, folder: Path) -> None:
    """Run it to its end."""
    process = start(run, folder)
    try:
        _, said = process.communicate(timeout=LONGEST)
    finally:
        kill(process)
    if process.returncode:
        raise RuntimeError(f"exit code {process.returncode}: {said.strip()[-300:]}")


def kill_in_time(run: Run, folder: Path, rng: np.random.Generator, seconds: float) -> bool:
    """Start it and kill it at a random moment; False when it came to its end before.

    Some kills fall into the start, most into a random moment after the first file has changed.
    """
    process, before = start(run, folder), changes(folder)
    begun = time.monotonic()
    deadline = begun + float(rng.uniform(0.1, 0.6)) * seconds
    if rng.random() < 0.75:
        while process.poll() is None and changes(folder) == before:
            time.sleep(POLL_SECONDS)
        deadline = time.monotonic() + float(rng.uniform(0.0, 0.25)) * seconds
    while process.poll() is None and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
    in_time = process.poll() is None
    kill(process)
    if not in_time and process.returncode:
        said = process.stderr.read() if process.stderr else ""
        raise RuntimeError(f"exit code {process.returncode}: {said.strip()[-300:]}")
    return in_time


def changes(folder: Path) -> frozenset[tuple[str, int]]:
    """Files with the time of their last change."""
    found = set()
    for path in folder.rglob("*"):
        try:
            found.add((str(path), path.stat().st_mtime_ns))
        except FileNotFoundError:
            continue  # renamed meanwhile
    return frozenset(found)


def kill(process: subprocess.Popen[str]) -> None:
    """SIGKILL, to the whole session."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


SUITE = Suite(
    name="kills",
    proves="training, fine-tuning, tuning and measuring, killed at random moments, end with the "
    "same bits as if not killed, and keep what was measured",
    unit="kills",
    count=COUNT,
    each=EACH,
    trial=trial,
    limit_seconds=1800.0,
)
