"""Locks of folders and files: one run at a time."""

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from go_rl.core.files.run_lock import RunLockError, locked

HOLDER = """
import sys, time
from go_rl.core.files.run_lock import RunLockError, locked
try:
    with locked(sys.argv[1]):
        print("held", flush=True)
        sys.stdin.readline()
        print("left", flush=True)
except RunLockError as error:
    print("refused", error, flush=True)
"""


def holder(folder: Path) -> subprocess.Popen[str]:
    """A process that holds the lock until it reads a line."""
    return subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(folder)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def ended(process: subprocess.Popen[str]) -> None:
    """Let it go."""
    process.communicate("\n", timeout=60)


def test_of_two_processes_started_at_once_one_is_refused_by_name(tmp_path):
    folder = tmp_path / "run"
    both = [holder(folder) for _ in range(2)]
    words = [said(each) for each in both]
    assert sorted(word.split()[0] for word in words) == ["held", "refused"]
    winner = both[next(i for i, word in enumerate(words) if word == "held")]
    refused = next(word for word in words if word != "held")
    assert f"process {winner.pid} on {socket.gethostname()}" in refused
    assert "since 20" in refused
    for each in both:
        ended(each)
    with locked(tmp_path / "alone"):  # of two at once, the refused one may have made the folder
        pass
    assert not (tmp_path / "alone").exists()


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_killed_holder_leaves_no_lock(tmp_path, how):
    process = holder(tmp_path)
    assert said(process) == "held"
    with pytest.raises(RunLockError, match=f"another run writes there: process {process.pid} on"):
        locked(tmp_path).__enter__()
    process.send_signal(how)
    process.wait(60)
    process.communicate()
    with locked(tmp_path):
        told = json.loads((tmp_path / ".lock").read_text())
        assert told["process"] == os.getpid()
    assert list(tmp_path.iterdir()) == []


def test_a_lock_of_another_machine_stays_one(tmp_path):
    lock = tmp_path / ".lock"
    lock.write_text(json.dumps({"process": 7, "host": "elsewhere", "since": "2026-01-01 00:00:00"}))
    with pytest.raises(RunLockError, match=r"process 7 on elsewhere since .* delete .*\.lock"):
        locked(tmp_path).__enter__()
    lock.unlink()
    with locked(tmp_path):
        pass


def test_what_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RunLockError, match=r"file/run: cannot be locked"):
        locked(tmp_path / "file" / "run").__enter__()
