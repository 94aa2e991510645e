"""`die_with`: a process that ends with the one that started it, by whatever signal that ends."""

from __future__ import annotations

import os
import select
import signal
import sys


def die_with(lifeline: int, receiver: int) -> None:
    """Have the kernel kill processes once the other end of a pipe is closed.

    Not prctl's PR_SET_PDEATHSIG, which strikes when the *thread* that started the process ends;
    and no thread here that waits, which compiled code may keep from the interpreter lock. Nothing
    happens on systems other than Linux.

    Args:
        lifeline: descriptor of the pipe's reading end; nothing is ever sent through it.
        receiver: number of a process, or of a process group, negative.
    """
    if sys.platform != "linux":
        return
    import fcntl

    fcntl.fcntl(lifeline, fcntl.F_SETOWN, receiver)
    fcntl.fcntl(lifeline, fcntl.F_SETSIG, signal.SIGKILL)
    flags = fcntl.fcntl(lifeline, fcntl.F_GETFL)
    fcntl.fcntl(lifeline, fcntl.F_SETFL, flags | os.O_ASYNC)
    if select.select([lifeline], [], [], 0)[0]:  # closed before the kernel was asked
        sys.exit(1)
