"""The process of a `go_rl.runtime.warm_worker.WarmWorker`."""

from __future__ import annotations

import os
import pickle
import select
import signal
import sys
import traceback
from contextlib import suppress
from importlib import import_module
from multiprocessing.connection import Connection
from operator import attrgetter


def serve(connection: Connection, lifeline: int, function: str) -> None:
    """Answer requests until the caller closes the connection; this is what the process does."""
    for descriptor in (connection.fileno(), lifeline):
        os.set_inheritable(descriptor, False)  # whatever the function starts
    _die_with(lifeline)
    with suppress(EOFError, OSError):
        while True:
            connection.send_bytes(_answer(function, connection.recv_bytes()))


def _answer(function: str, request: bytes) -> bytes:
    try:
        module, _, name = function.partition(":")
        call = attrgetter(name)(import_module(module))
        return pickle.dumps((True, call(pickle.loads(request))), pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        return pickle.dumps((False, (type(error).__name__, str(error), traceback.format_exc())))


def _die_with(lifeline: int) -> None:
    """Have the kernel kill this process group once the other end of ``lifeline`` is closed.

    Not prctl's PR_SET_PDEATHSIG, which strikes when the *thread* that started the process ends;
    and no thread here that waits, which compiled code may keep from the interpreter lock.
    """
    if sys.platform != "linux":
        return
    import fcntl

    fcntl.fcntl(lifeline, fcntl.F_SETOWN, -os.getpgrp())
    fcntl.fcntl(lifeline, fcntl.F_SETSIG, signal.SIGKILL)
    flags = fcntl.fcntl(lifeline, fcntl.F_GETFL)
    fcntl.fcntl(lifeline, fcntl.F_SETFL, flags | os.O_ASYNC)
    if select.select([lifeline], [], [], 0)[0]:  # closed before the kernel was asked
        sys.exit(1)
