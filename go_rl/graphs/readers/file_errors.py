"""Errors that name the user's file: unreadable text, broken invariants, unforeseen ones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from go_rl.core.errors import GoRLError, GraphError, ReadError
from go_rl.core.files.paths import check_readable

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
        lines = str(error).strip().splitlines()
        raise UnforeseenError(
            f"{path}: damaged, or of a form that go_rl does not know "
            f"({type(error).__name__}{': ' + lines[0][:200] if lines else ''})"
        ) from error


@contextmanager
def naming(path: str | Path) -> Iterator[None]:
    """Turn a `GraphError` of a graph under construction into a `ReadError` that names the file."""
    try:
        yield
    except GraphError as error:
        raise ReadError(f"{path}: {error}") from error


def read_bytes(path: Path, most: int = -1) -> bytes:
    """Return the first ``most`` bytes of a file (-1: all); a `ReadError` where it is unreadable."""
    try:
        check_readable(path)
        with path.open("rb") as file:
            return file.read(most)
    except OSError as error:
        raise ReadError(f"{path}: cannot be read ({error.strerror or error})") from error


def read_text(path: Path) -> str:
    """Return the text of a file; a `ReadError` where it is not UTF-8."""
    try:
        check_readable(path)
        return path.read_text("utf-8-sig")
    except OSError as error:
        raise ReadError(f"{path}: cannot be read ({error.strerror or error})") from error
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise ReadError(
            f"{path}: not UTF-8 at byte {error.start} (line {line}); save it as UTF-8"
        ) from error
