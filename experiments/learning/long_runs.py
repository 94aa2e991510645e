"""Long runs, worked off one after the other on one core: `make long`.

``long.toml`` lists them. What they write lies in ``runs/``, small enough to commit; what can be
made again is in folders named ``cache``, which git does not see.

Run: ``python -m experiments.learning.long_runs start|status|pause|resume|stop``.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
LIST = HERE / "long.toml"
RUNS = HERE / "runs"
WORK = Path("build/long")
"""Folder of the process number and the log; not committed."""
PROCESS, LOG = "process", "log"
SPENT = "spent.json"
"""Core-seconds of each run so far, in `RUNS`."""
KEEP_EVERY = 20.0
"""Seconds between two writings of what was spent."""
LONGEST_STOP = 60.0
"""Seconds that a run may take to write its last checkpoint."""
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class LongRun:
    """One entry of the list."""

    name: str
    command: str
    """``go-rl`` or ``python``, those of this environment, and their arguments."""
    core_hours: float
    """Estimate."""
    writes: str

    @property
    def done(self) -> Path:
        """File that says that the run has ended."""
        return RUNS / f"{self.name}.done"


def listed(path: Path = LIST) -> list[LongRun]:
    """Return the runs in their order."""
    return [LongRun(**entry) for entry in tomllib.loads(path.read_text(encoding="utf-8"))["run"]]


def main() -> int:
    """Run the script; returns the exit code."""
    commands: dict[str, Callable[[], int]] = {
        "start": start, "work": work, "status": status,
        "pause": lambda: _signal(signal.SIGSTOP, "paused"),
        "resume": lambda: _signal(signal.SIGCONT, "goes on"),
        "stop": lambda: _signal(signal.SIGTERM, "stopped"),
    }  # fmt: skip
    parser = argparse.ArgumentParser(prog="python -m experiments.learning.long_runs")
    parser.add_argument("command", choices=[name for name in commands if name != "work"] + ["work"])
    return commands[parser.parse_args().command]()


def start() -> int:
    """Begin or go on in the background; a paused worker goes on."""
    if _worker() is not None:
        return _signal(signal.SIGCONT, "is at work")
    WORK.mkdir(parents=True, exist_ok=True)
    with (WORK / LOG).open("a") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "experiments.learning.long_runs", "work"],
            stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
    (WORK / PROCESS).write_text(f"{process.pid}\n")
    print(f"long runs: begun, process {process.pid}; make long-status says how far they are")
    return 0


def work() -> int:
    """Work off the list on the last core; an entry that fails is tried again next time."""
    _take_last_core()
    RUNS.mkdir(parents=True, exist_ok=True)
    failed: set[str] = set()
    while run := _next(failed):
        print(f"== {run.name}: {run.command}", flush=True)
        code = _worked(run)
        print(f"== {run.name}: ended with {code}", flush=True)
        if code == 0:
            run.done.write_text(f"{_spent().get(run.name, 0.0) / 3600:.2f} core-hours\n")
        else:
            failed.add(run.name)
    return 0


def _take_last_core() -> None:
    """Take the last core: whoever shares the machine has the others."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def _next(failed: set[str]) -> LongRun | None:
    """The first run to be done; the list may have been changed since the last began."""
    open_runs = (run for run in listed() if not run.done.exists() and run.name not in failed)
    return next(open_runs, None)


def _worked(run: LongRun) -> int:
    """Run one command, and keep what it has spent."""
    program, *arguments = shlex.split(run.command)
    process = subprocess.Popen([Path(sys.executable).with_name(program), *arguments])
    before, code = _spent().get(run.name, 0.0), None
    while code is None:
        with suppress(subprocess.TimeoutExpired):
            code = process.wait(KEEP_EVERY) if code is None else code
        used = _core_seconds(process.pid) if code is None else None
        if used is not None:
            _keep(run.name, before + used)
    return code


def _core_seconds(pid: int) -> float | None:
    """Processor time of a process, from the system's table; None where there is none."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / TICKS


def _spent() -> dict[str, float]:
    path = RUNS / SPENT
    return json.loads(path.read_text()) if path.exists() else {}


def _keep(name: str, seconds: float) -> None:
    document = {**_spent(), name: round(seconds, 1)}
    aside = RUNS / f"{SPENT}.new"
    aside.write_text(json.dumps(document, indent=1) + "\n")
    aside.replace(RUNS / SPENT)


def status() -> int:
    """Print each run with what it has taken, and the last line of the log."""
    spent, left = _spent(), 0.0
    for run in listed():
        hours = spent.get(run.name, 0.0) / 3600
        state = "done" if run.done.exists() else "begun" if hours else "waits"
        remaining = 0.0 if run.done.exists() else max(run.core_hours - hours, 0.1)
        left += remaining
        print(f"{run.name:20} {state:6} {hours:6.2f} of about {run.core_hours:g} core-hours: "
              f"{run.writes}")  # fmt: skip
    worker = _worker()
    print(f"about {left:.1f} core-hours are left; "
          f"{'no worker' if worker is None else f'worker {worker} {_state(worker)}'}")  # fmt: skip
    log = WORK / LOG
    if log.exists() and (lines := log.read_text(errors="replace").split("\n")[-3:]):
        print(f"last said, {time.time() - log.stat().st_mtime:.0f} s ago:", *filter(None, lines))
    return 0


def _state(worker: int) -> str:
    return "is paused" if " T " in _stat(worker) else "is at work"


def _stat(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""


def _worker() -> int | None:
    """Return the worker's process; None: there is none."""
    try:
        pid = int((WORK / PROCESS).read_text())
    except (OSError, ValueError):
        return None
    return pid if "python" in _stat(pid) and ") Z " not in _stat(pid) else None


def _signal(number: signal.Signals, says: str) -> int:
    worker = _worker()
    if worker is None:
        print("long runs: no worker; make long begins one")
        return 1
    os.killpg(worker, number)
    if number is signal.SIGTERM:  # also where it is paused
        os.killpg(worker, signal.SIGCONT)
        _await_end(worker)
    print(f"long runs: worker {worker} {says}")
    return 0


def _await_end(group: int) -> None:
    """Wait until no process of a group is left: its run holds its folder until then."""
    with suppress(ProcessLookupError):
        for _ in range(int(LONGEST_STOP / 0.2)):
            os.killpg(group, 0)
            time.sleep(0.2)


if __name__ == "__main__":
    raise SystemExit(main())
