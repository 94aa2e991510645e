"""Subprocesses for C++ code that a malformed model may crash, hang or make allocate terabytes.

A worker is a module run as ``python -P -m MODULE FOLDER SECONDS LIFELINE``, which reads and writes
files in the folder and calls `begin` first.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from go_rl.runtime.address_space import bound_memory
from go_rl.runtime.lifeline import die_with

SMALL_BYTES, SMALL_SECONDS = 1 << 20, 28.0
"""Processor time for a model up to this size, weights left out."""
LARGE_SECONDS = 300.0
"""Processor time for a larger one."""
PATIENCE = 30
"""Seconds of waiting for each second of processor time: other programs may keep the cores busy."""
MEMORY_BYTES = 4 << 30
"""Address space for a small model."""


def time_limit(size: int, share: float = 1.0) -> float:
    """Return the processor time for one part of the work on a model of ``size`` bytes, seconds."""
    return share * (SMALL_SECONDS if size <= SMALL_BYTES else LARGE_SECONDS)


def run_guarded(module: str, folder: Path, seconds: float) -> str:
    """Run a worker on a folder; return what went wrong, or an empty string.

    Raises:
        TimeoutError: it was not done after ``seconds`` of processor time, or after `PATIENCE` times
            as long; says which.
    """
    # -P: the working folder, often the model's, is no place to import modules from.
    command = [sys.executable, "-P", "-m", module, str(folder), str(seconds)]
    paths = [str(Path(__file__).resolve().parents[3]), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in paths if p)}
    theirs, ours = os.pipe()
    try:
        done = subprocess.run(
            [*command, str(theirs)], pass_fds=[theirs], capture_output=True, text=True,
            timeout=PATIENCE * seconds, env=environment,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise TimeoutError(
            f"not done after {PATIENCE * seconds:g} s, in which it got less than {seconds:g} s of "
            "processor time"
        ) from None
    finally:
        os.close(theirs)
        os.close(ours)
    if done.returncode == -signal.SIGPROF:
        raise TimeoutError(f"not done after {seconds:g} s of processor time")
    if not done.returncode:
        return ""
    tail = done.stderr.strip().splitlines()[-1:]
    return tail[0] if tail else f"exit status {done.returncode}"


def begin(arguments: Sequence[str], model: str) -> Path:
    """Prepare a worker: it ends with its caller; time and memory befit its model.

    Args:
        arguments: of the worker: the folder, seconds of processor time, and the reading end of a
            pipe of its caller; the last two may lack where a person starts it.
        model: name of the model's file in the folder.

    Returns:
        The folder.
    """
    folder = Path(arguments[0])
    if len(arguments) > 1:
        signal.setitimer(signal.ITIMER_PROF, float(arguments[1]))  # SIGPROF ends it
        die_with(int(arguments[2]), os.getpid())
    if (folder / model).stat().st_size <= SMALL_BYTES:
        bound_memory(MEMORY_BYTES)
    return folder
