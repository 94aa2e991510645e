"""`plain_help`: the parser's help without what tells a user nothing."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Any

_EMPTY = re.compile(r"\(default:(?:[\s│|]|\x1b\[[0-9;]*m)*(?:None)?\)")
"""``(default: None)`` and ``(default: )``, broken between two lines of a box or not."""
_WORDS = re.compile(r"\(default:|None|\)")
_NONE_OR = re.compile(r"\{None\}\|(\w+)")
_BLANK = re.compile(r"^[│|] +[│|]\n", re.MULTILINE)
_NONE_AMONG = re.compile(r"\{None,([^}]*\})")


def plain_help(text: str) -> str:
    """Return help in which blanks stand for ``(default: None)``, and metavars have no ``None``:
    what an option does when it is not given is said by its sentence. No line changes its width;
    lines that are blank then are left out."""
    text = _EMPTY.sub(lambda found: _WORDS.sub(lambda word: " " * len(word[0]), found[0]), text)
    text = _NONE_OR.sub(lambda found: found[1] + " " * 7, text)
    text = _NONE_AMONG.sub(lambda found: "{" + found[1] + " " * 5, text)
    return _BLANK.sub("", text)


@contextmanager
def plain_output() -> Iterator[None]:
    """Print what is printed meanwhile at the end, as `plain_help` has it."""
    stream = sys.stdout
    held = _Held(stream)
    try:
        with redirect_stdout(held):
            yield
    finally:
        stream.write(plain_help(held.getvalue()))


class _Held(io.StringIO):
    """Keeps what is written; a terminal if the stream is one, so that colours stay."""

    def __init__(self, stream: Any) -> None:
        super().__init__()
        self._stream = stream

    @property
    def encoding(self) -> str:
        return self._stream.encoding or "utf-8"

    def isatty(self) -> bool:
        return self._stream.isatty()

    def fileno(self) -> int:
        return self._stream.fileno()
