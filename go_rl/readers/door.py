"""The last guard of the readers: unforeseen errors become a `ReadError`, too."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from go_rl.core.errors import GoRLError, ReadError

_UNFORESEEN = (ArithmeticError, AssertionError, AttributeError, LookupError, MemoryError, OSError,
               RuntimeError, StopIteration, TypeError, ValueError)  # fmt: skip
"""Errors that malformed content may raise; NotImplementedError and RecursionError are
RuntimeErrors."""


class UnforeseenError(ReadError):
    """An unforeseen error in a file; the cause is chained."""

    unforeseen = True
    """Defects that the suite of mutated files looks for."""


@contextmanager
def reading(path: str | Path) -> Iterator[None]:
    """Turn errors that escape from a reader into a `ReadError` that names the file.

    Each reader checks for the errors that it knows; this is for the rest.
    """
    try:
        yield
    except GoRLError:
        raise
    except _UNFORESEEN as error:
        said = str(error).strip().splitlines()
        raise UnforeseenError(
            f"{path}: damaged, or of a form that go_rl does not know "
            f"({type(error).__name__}{': ' + said[0][:200] if said else ''})"
        ) from error
