"""Paths that a user gave, whatever they are."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path

from go_rl.core.errors import GoRLError


def path_of(given: object, what: str, refused: type[GoRLError]) -> Path:
    """Return what a user gave as a path.

    Args:
        given: a text or a path; anything else is refused.
        what: it is, at the start of the message, such as ``a plan's file``.
        refused: class of the error.

    Raises:
        GoRLError: of the given class; it is no path.
    """
    if isinstance(given, str | Path) and str(given):
        return Path(given)
    raise refused(f"{what} must be a path, not {given!r}")


def check_readable(path: str | Path) -> None:
    """Raise an `OSError` for a named pipe, which may keep a reader waiting forever. An anonymous
    one, such as ``/dev/stdin`` of a pipeline, ends with the program that writes into it."""
    with suppress(FileNotFoundError):  # where there is none, opening it says so
        if stat.S_ISFIFO(os.stat(os.path.realpath(path)).st_mode):
            raise OSError(errno.EINVAL, "it is a pipe, not a regular file", str(path))


def user_cache() -> Path:
    """Return the folder: ``go_rl`` in ``XDG_CACHE_HOME``, or in ``~/.cache`` without it."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "go_rl"
