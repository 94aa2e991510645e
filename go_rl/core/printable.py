"""`printable`, `abridged`: names that come from files, fit for a screen and an error message."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

LONGEST_NAME = 200
"""Characters of one word of a message."""
LONGEST_MESSAGE = 2000
"""Characters of a whole message."""
ELLIPSIS = "…"
LONGEST_SENTENCE = 300
"""Characters of an error's line that another sentence repeats."""
LISTED = 4
"""Names that a sentence lists."""


def printable(text: str) -> str:
    """Return the text with every character that is no visible one and no space escaped as Python
    does: control and escape characters, line breaks, and marks that turn the direction of text."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")


def abridged(text: str, longest: int, measure: Callable[[str], int] = len) -> str:
    """Return the text, its middle replaced by an ellipsis where it is longer than ``longest``.

    Args:
        text: any text.
        longest: what the result measures at most; at least 1.
        measure: length of a text; characters by default, else cells of a screen, for instance.
    """
    if len(text) <= longest and measure(text) <= longest:
        return text
    kept = min(len(text), longest) - 1
    while measure(short := _without_middle(text, kept)) > longest and kept > 0:
        kept -= 1
    return short


def _without_middle(text: str, kept: int) -> str:
    tail = kept // 2
    return text[: kept - tail] + ELLIPSIS + (text[-tail:] if tail else "")


def message_line(message: str) -> str:
    """Return a message as one line that a terminal takes: `printable`, long words and the whole
    `abridged`."""
    words = re.split(r"[ \n]", message, maxsplit=LONGEST_MESSAGE)
    return abridged(" ".join(map(name_line, words)), LONGEST_MESSAGE)


def name_line(name: str, longest: int = LONGEST_NAME) -> str:
    """Return a name as a part of a line: `printable` and `abridged`."""
    return abridged(printable(abridged(name, longest + 1)), longest)


def counted(number: int, noun: str) -> str:
    """Return ``1 node``, ``2 nodes`` or ``1,234 nodes``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def listed(names: Sequence[object]) -> str:
    """Return the first names, quoted, and how many more there are."""
    first = ", ".join(map(repr, names[:LISTED]))
    return first + (f" and {len(names) - LISTED} more" if len(names) > LISTED else "")


def first_line(error: BaseException) -> str:
    """Return the first line of the error's message, or its type where it has none."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def reason(error: BaseException) -> str:
    """Return why something cannot be read, in words: an `OSError`'s of the system, the name that a
    `KeyError` misses, else `first_line`."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return f"it has no {error}" if isinstance(error, KeyError) else first_line(error)


def sentence_of(error: BaseException) -> str:
    """Return the error's type and the begin of its first non-empty line."""
    begin = [line[:LONGEST_SENTENCE] for line in _lines(error)[:1]]
    return ": ".join([type(error).__name__, *begin])


def last_line(error: BaseException) -> str:
    """Return the error's type and its last non-empty line."""
    return ": ".join([type(error).__name__, *_lines(error)[-1:]])


def _lines(error: BaseException) -> list[str]:
    return [line.strip() for line in str(error).splitlines() if line.strip()]
