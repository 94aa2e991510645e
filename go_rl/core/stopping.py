"""A user's wish that a search ends early with the best plan so far, as a signal tells a process.

`Progress.spent` heeds it, so that every method ends as if its budget were over. Nobody has the wish
but a command that caught a signal inside `stoppable`; elsewhere Ctrl-C raises KeyboardInterrupt.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event

_ASKED, _KEEPS = Event(), Event()


def ask_to_stop() -> bool:
    """Ask the search to end; False when it has no plan yet that could be kept."""
    if not _KEEPS.is_set():
        return False
    _ASKED.set()
    return True


def stop_asked() -> bool:
    """Return whether the search was asked to end."""
    return _ASKED.is_set()


def keep_plans() -> None:
    """Say that the search has a plan from now on, for when it is asked to end."""
    _KEEPS.set()


@contextmanager
def ending_early() -> Iterator[None]:
    """A part of a search that an interrupt ends, and nothing more, once the search was asked to
    end: it took too long to heed that."""
    try:
        yield
    except KeyboardInterrupt:
        if not stop_asked():
            raise


@contextmanager
def stoppable() -> Iterator[None]:
    """A search that can be asked to end; before and after it nothing is asked."""
    _ASKED.clear()
    _KEEPS.clear()
    try:
        yield
    finally:
        _ASKED.clear()
        _KEEPS.clear()
