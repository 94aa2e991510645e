"""The process of a `go_rl.runtime.warm_worker.WarmWorker`."""

from __future__ import annotations

import os
import pickle
import traceback
from contextlib import suppress
from importlib import import_module
from multiprocessing.connection import Connection
from operator import attrgetter

from go_rl.runtime.lifeline import die_with


def serve(connection: Connection, lifeline: int, function: str) -> None:
    """Answer requests until the caller closes the connection; this is what the process does."""
    for descriptor in (connection.fileno(), lifeline):
        os.set_inheritable(descriptor, False)  # whatever the function starts
    die_with(lifeline, -os.getpgrp())
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
