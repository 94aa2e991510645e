"""JSON from outside: what Python's parser lets through or stumbles over is a `ValueError` here."""

from __future__ import annotations

import json
from typing import Any


def parse_json(data: str | bytes) -> Any:
    """Return the document that ``data`` holds.

    Raises:
        ValueError: not UTF-8, not JSON, nested too deeply, an object that names a field twice, or
            text with half a surrogate pair, which no file can hold.
    """
    try:
        text = data.decode("utf-8-sig") if isinstance(data, bytes) else data
        document = json.loads(text, object_pairs_hook=_object)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    if "\\ud" in text.lower():
        _check_surrogates(document)
    return document


def _object(fields: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(fields)
    if len(found) < len(fields):
        names = [name for name, _ in fields]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"field {twice!r} appears twice in one object")
    return found


def _check_surrogates(document: Any) -> None:
    try:
        json.dumps(document, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"text with half a surrogate pair ({error.reason})") from error
