"""Searches that SIGINT or SIGTERM ends at a random moment."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from cli.profile_documents import chain_document
from runner.suite import Suite

from go_rl.core import Plan
from go_rl.report.plan_folder import FILES

COUNT = 20
ROOT = Path(__file__).resolve().parents[3]
CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}
LONGEST = 60.0
"""Seconds until a search must have begun, and from the signal until it must have ended."""


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """Start a search for a plan in a folder."""
    (folder / "m.json").write_text(json.dumps(chain_document(12)))
    words = ("optimize", "m.json", "--hardware", "ring2", "--out", "p", *arguments)
    return subprocess.Popen(
        [sys.executable, "-m", "go_rl", *words], cwd=folder, text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip


def leftovers(folder: Path) -> Iterator[str]:
    """What is in the folder, or beside it, that is no file of a whole plan."""
    there = set(os.listdir(folder / "p")) if (folder / "p").exists() else set()
    if there:
        Plan.load(folder / "p" / "plan.json")
    yield from there - set(FILES)
    yield from set(os.listdir(folder)) - {"m.json", "p"}


def trial(index: int) -> str | None:
    """One search, which lasts longer than anyone waits."""
    rng = np.random.default_rng(index)
    number = (signal.SIGINT, signal.SIGTERM)[index % 2]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        process = start(folder, "--method", "random", "--seconds", "600")
        try:
            end = time.monotonic() + LONGEST
            while not (folder / "p" / ".lock").exists() and time.monotonic() < end:
                time.sleep(0.02)
            time.sleep(float(rng.uniform(0.0, 4.0)))
            process.send_signal(number)
            _, said = process.communicate(timeout=LONGEST)
        finally:
            process.kill()
            process.wait()
        if process.returncode != CODES[number] or "Traceback" in said:
            return f"{number.name}: exit code {process.returncode}: {said[-200:]!r}"
        left = sorted(leftovers(folder))
    return f"{number.name}: left {left}" if left else None


SUITE = Suite(
    name="signals",
    proves="a search that SIGINT or SIGTERM ends leaves a whole plan or none, nothing else, and "
    "the exit code 130 or 143",
    unit="signals",
    count=COUNT,
    trial=trial,
)
