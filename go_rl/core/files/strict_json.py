"""Strict JSON (RFC 8259): no NaN, no infinity, no duplicate field, limited nesting.

Python's own reader accepts all of these, and a plan or configuration with a duplicate field would
mean whatever came last.
"""

from __future__ import annotations

import json
import reprlib
from math import isfinite
from pathlib import Path
from typing import Any

from go_rl.core.files.paths import check_readable

DEEPEST = 64
"""Maximum depth of nested lists and objects; our documents have five levels."""
MOST_BYTES = 1 << 28
"""Largest file, bytes; a plan of a million operators has a tenth of it."""
LONGEST = 80
"""Characters of a text or number that a message repeats."""

_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = LONGEST


def read_json(path: str | Path) -> Any:
    """Return the document in a file, or in the anonymous pipe behind ``/dev/stdin``.

    Raises:
        OSError: it cannot be read, or is a named pipe (`check_readable`).
        ValueError: see `parse_json`; or it is larger than `MOST_BYTES`, as an endless device is.
    """
    check_readable(path)
    with Path(path).open("rb") as file:
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise ValueError(f"more than {MOST_BYTES >> 20} MiB")
    return parse_json(content)


def parse_json(content: str | bytes) -> Any:
    """Parse a document; bytes are UTF-8, with or without a byte order mark.

    Raises:
        ValueError: it is not JSON in the sense of this module; the message says what and where.
    """
    try:
        text = content.decode("utf-8-sig") if isinstance(content, bytes) else content
        if not text.strip():
            raise ValueError("it is empty")
        document = json.loads(
            text, parse_constant=_refused, parse_float=_number,
            object_pairs_hook=_object,
        )  # fmt: skip
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 at byte {error.start}") from error
    except RecursionError as error:
        raise ValueError(f"lists and objects nest deeper than {DEEPEST} levels") from error
    _check_depth(document)
    if "\\ud" in text.lower():
        _check_surrogates(document)
    return document


def shown(value: object) -> str:
    """Return a value from a document as a message shows it: cut where it is long or deep."""
    return _SHORT.repr(value)


def _refused(word: str) -> float:
    raise ValueError(f"{word} is no JSON number")


def _number(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise ValueError(f"{shown(text)} is too large for a number of 64 bits")
    return number


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"field {shown(name)} is there twice")
        found[name] = value
    return found


def _check_surrogates(document: Any) -> None:
    """Refuse half a surrogate pair, which UTF-8 cannot encode."""
    try:
        json.dumps(document, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"text with half a surrogate pair ({error.reason})") from error


def _check_depth(document: Any) -> None:
    level = [document]
    for _ in range(DEEPEST):
        level = [each for outer in level for each in _inside(outer)]
        if not level:
            return
    raise ValueError(f"lists and objects nest deeper than {DEEPEST} levels")


def _inside(outer: Any) -> list[Any]:
    values = outer.values() if isinstance(outer, dict) else outer
    if not isinstance(outer, dict | list):
        return []
    return [value for value in values if isinstance(value, dict | list)]
