"""The last guard of the readers: what none of them foresaw becomes a `ReadError`, too."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from go_rl.core.errors import GoRLError, ReadError

_UNFORESEEN = (ArithmeticError, AssertionError, AttributeError, LookupError, MemoryError, OSError,
               RuntimeError, StopIteration, TypeError, ValueError)  # fmt: skip
"""What malformed content may raise; NotImplementedError and RecursionError are RuntimeErrors."""


class UnforeseenError(ReadError):
    """A file that no reader knows how to refuse; the cause is chained."""

    unforeseen = True
    """Defects that the suite of mutated files looks for."""


@contextmanager
def reading(path: str | Path) -> Iterator[None]:
    """Turn what escapes from a reader into a `ReadError` that names the file.

    Each reader refuses by itself what it knows to be wrong; this is for the rest.
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
