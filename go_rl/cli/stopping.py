"""Signals that end a command: SIGTERM as well as Ctrl-C, and searches that keep their best plan."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType
from typing import Any

from go_rl.cli.exit_codes import INTERRUPTED, TERMINATED

GRACE_SECONDS = 5.0
"""Time that a search has to end by itself before it is interrupted."""
AGAIN_SECONDS = 0.02
FORGETFUL = frozenset({
    "_remove", "__del__", "_xla_gc_callback",
    "_raw_object_cache_notify", "_raw_object_cache_getbuffer",
})  # fmt: skip
"""Finalizers, and callbacks of weak references, of the garbage collector and of Numba's compiler:
what they raise is ignored."""
STOPPED = "stopped; what is shown is the best plan so far"
Handler = Callable[[int, FrameType | None], Any]


class Terminated(KeyboardInterrupt):
    """The process was sent SIGTERM."""


@dataclass
class Stop:
    """Whether and how the user ended a search."""

    code: int | None = None
    """Exit code; None: nobody did."""


def code_of(number: int) -> int:
    """Return the exit code of a run that a signal ended."""
    return TERMINATED if number == signal.SIGTERM else INTERRUPTED


def raise_by_signal(number: int, frame: FrameType | None) -> None:
    """End a command by an exception, so that files are closed and the cursor is shown again; a
    little later where Python would print and forget it."""
    while frame is not None:
        if frame.f_code.co_name in FORGETFUL:
            again = threading.Timer(AGAIN_SECONDS, os.kill, (os.getpid(), number))
            again.daemon = True
            again.start()
            return
        frame = frame.f_back
    raise Terminated if number == signal.SIGTERM else KeyboardInterrupt


def end_at_once(number: int, frame: FrameType | None) -> None:
    """End a process that has only begun to import: an exception in an import may be forgotten."""
    with suppress(OSError):
        os.write(2, b"go-rl: stopped\n")
    os._exit(code_of(number))


@contextmanager
def handling(handlers: Mapping[int, Handler]) -> Iterator[None]:
    """Handle signals so; only the main thread may, elsewhere nothing changes."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def noting_the_signal() -> Iterator[Stop]:
    """A run that SIGINT and SIGTERM interrupt, and whose function may still return what it has.
    Yields what will say which of them came."""
    stop = Stop()

    def on_signal(number: int, frame: FrameType | None) -> None:
        stop.code = code_of(number)
        raise_by_signal(number, frame)

    with handling({signal.SIGINT: on_signal, signal.SIGTERM: on_signal}):
        yield stop


@contextmanager
def keeping_the_best() -> Iterator[Stop]:
    """A search that SIGINT and SIGTERM end with its best plan so far; before it has one, and at the
    second signal, they end the command. Yields what will say how it ended."""
    from go_rl.core.stopping import ask_to_stop, stoppable  # imports the core, which takes time

    stop = Stop()

    def on_signal(number: int, frame: FrameType | None) -> None:
        if stop.code is not None or not ask_to_stop():
            raise_by_signal(number, frame)
        stop.code = code_of(number)
        signal.setitimer(signal.ITIMER_REAL, GRACE_SECONDS)

    def on_alarm(number: int, frame: FrameType | None) -> None:
        raise_by_signal(signal.SIGTERM if stop.code == TERMINATED else signal.SIGINT, frame)

    handlers: dict[int, Handler] = {signal.SIGINT: on_signal, signal.SIGTERM: on_signal,
                signal.SIGALRM: on_alarm}  # fmt: skip
    with stoppable(), handling(handlers):
        try:
            yield stop
        finally:
            if stop.code is not None:
                signal.setitimer(signal.ITIMER_REAL, 0.0)
