"""`leaving_at_once`: a command in several processes, which JAX's runtime may abort.

Where another process cannot be reached, the runtime writes a log of C++ to file descriptor 2 and
aborts, past all that Python could catch. So that log is kept aside, and one line is said instead.
"""

from __future__ import annotations

import ctypes
import os
import re
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from go_rl.cli.exit_codes import BAD_INPUT, OK
from go_rl.cli.guard import guarded

GRACE_SECONDS = 3.0
"""Time that Python's own error, which says more, has to end the process first."""
LONGEST = 300
"""Characters of the runtime's own words in a message."""
_HANDLER = ctypes.CFUNCTYPE(None, ctypes.c_int)
_KEPT: list[Any] = []
"""Handlers, which must live as long as the process."""


def leaving_at_once(run: Callable[[], int], who: str) -> int:
    """Return the exit code of a command that is one of several processes.

    If it fails, the process ends here: at an ordinary end JAX would wait for the others.

    Args:
        run: the command.
        who: this process, for messages.
    """
    terminal = os.dup(2)
    sys.stderr = os.fdopen(terminal, "w", buffering=1)
    log = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the process
    os.dup2(log.fileno(), 2)
    _on_abort(lambda: _explain(_read(log.fileno()), terminal, who))
    code = guarded(run)
    if code != OK:
        with suppress(OSError):
            sys.stderr.flush()
        os._exit(code)
    return code


def _on_abort(explain: Callable[[], None]) -> None:
    def handle(number: int) -> None:
        if threading.current_thread() is not threading.main_thread():
            time.sleep(GRACE_SECONDS)
        explain()
        os._exit(BAD_INPUT)

    handler = _HANDLER(handle)
    _KEPT.append(handler)
    ctypes.CDLL(None).signal(int(signal.SIGABRT), handler)


def _explain(log: str, terminal: int, who: str) -> None:
    """Say in one line why the runtime aborts; a log that is not about processes is shown whole."""
    said = log if "oordination" not in log else f"go-rl: {who}: {sentence(log)}\n"
    os.write(terminal, said.encode())


def sentence(log: str) -> str:
    """Return what the log of JAX's runtime means."""
    if "more recent" in log or "newer incarnation" in log:
        return "another process has the same --processes.index; give each its own"
    if "Unexpected task registered" in log:
        return "process 0 counts fewer processes; give the same --processes.count everywhere"
    if "RegisterTask" in log:
        return (
            "not all processes of the run met in time (--processes.start-seconds). Check that "
            "each was started, with the same --processes.coordinator and --processes.count, "
            f"and that process 0 can be reached there ({_status(log)})"
        )
    named = re.search(r"stopped sending heartbeats\):\s*([\d,\s]+)", log)
    lost = f"process {' '.join(named[1].split())}" if named else "process 0 or another"
    return (
        f"{lost} has ended or cannot be reached ({_status(log)}); once its own error is dealt "
        "with, the same command in all processes goes on from the last checkpoint"
    )


def _status(log: str) -> str:
    """The status in the log, in one line."""
    status = log.rpartition("absl::Status: ")[2].partition("*** Check failure")[0]
    return " ".join(status.split())[:LONGEST]


def _read(number: int) -> str:
    return os.pread(number, 1 << 20, 0).decode(errors="replace")
