"""A guarded worker ends with the process that started it, killed or not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from go_rl.graphs.readers import guarded

SLEEPER = """
import os, sys, time
from go_rl.graphs.readers.guarded import begin
folder = begin(sys.argv[1:], "model")
(folder / "part").write_text(str(os.getpid()))
(folder / "part").rename(folder / "number")
time.sleep(60)
"""
CALLER = """
import sys
from pathlib import Path
from go_rl.graphs.readers.guarded import run_guarded
run_guarded("sleeper", Path(sys.argv[1]), 60.0)
"""
PATIENCE = 30.0
WAITER = """
import sys, time
from go_rl.graphs.readers.guarded import begin
begin(sys.argv[1:], "model")
time.sleep(1.0)
if sys.argv[1].endswith("busy"):
    while True:
        pass
"""


def test_a_worker_dies_with_its_killed_caller(tmp_path: Path) -> None:
    (tmp_path / "sleeper.py").write_text(SLEEPER)
    (tmp_path / "model").write_bytes(b"small")
    caller = subprocess.Popen(
        [sys.executable, "-c", CALLER, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )
    with caller:
        until(lambda: (tmp_path / "number").exists())
        number = int((tmp_path / "number").read_text())
        assert alive(number)
        caller.send_signal(signal.SIGKILL)
    until(lambda: not alive(number))


def test_only_time_on_a_processor_counts(tmp_path: Path, monkeypatch) -> None:
    """A busy machine is no fault of a model."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(guarded, "PATIENCE", 1000)
    (tmp_path / "waiter.py").write_text(WAITER)
    for kind in ("idle", "busy"):
        (tmp_path / kind).mkdir()
        (tmp_path / kind / "model").write_bytes(b"small")
    assert guarded.run_guarded("waiter", tmp_path / "idle", 0.5) == ""
    with pytest.raises(TimeoutError, match=r"not done after 0\.5 s of processor time"):
        guarded.run_guarded("waiter", tmp_path / "busy", 0.5)
    monkeypatch.setattr(guarded, "PATIENCE", 1)
    with pytest.raises(TimeoutError, match=r"not done after 0\.5 s, in which it got less than"):
        guarded.run_guarded("waiter", tmp_path / "idle", 0.5)


def until(holds) -> None:
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


def alive(number: int) -> bool:
    """Whether a process runs; one that nobody has waited for does not."""
    try:
        state = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"
