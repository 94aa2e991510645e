"""`path_of`: a path that a user gave, whatever it is."""

from __future__ import annotations

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
