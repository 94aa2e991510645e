"""`Malformed`, and documents with one thing wrong."""

import copy
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

NAN, INF = float("nan"), float("inf")
DROP = object()
"""In place of a value: the field is not there."""
Way = tuple[str | int, ...]
"""Keys and places that lead to a field of a document."""


@dataclass(frozen=True)
class Malformed:
    """An input that must be refused."""

    name: str
    arguments: tuple[str, ...]
    """What follows ``go-rl``."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Files in the folder where the command runs."""
    words: tuple[str, ...] = ()
    """What the sentence must contain: the field, node or file, or what would be right; a ``|``
    stands between words of which one will do."""


@dataclass(frozen=True)
class Told:
    """A wrong value, and a word of the answer that is not the field's name."""

    value: Any
    word: str


def changed(document: Any, way: Way, value: Any) -> bytes:
    """The document as JSON with the field at ``way`` set, or dropped."""
    document = copy.deepcopy(document)
    *before, last = way
    place = document
    for key in before:
        place = place[key]
    if value is DROP:
        del place[last]
    else:
        place[last] = value
    return json.dumps(document).encode()


def edits(
    what: str,
    document: Any,
    wrong: Iterable[tuple[Way, Iterable[Any]]],
    file: str,
    arguments: tuple[str, ...],
    files: Mapping[str, bytes] | None = None,
) -> Iterator[Malformed]:
    """One case for each wrong value of each field; the answer names the file and the field, or
    has the word of `Told`."""
    for way, values in wrong:
        for value in values:
            field_name = next((str(key) for key in reversed(way) if isinstance(key, str)), "")
            word = field_name
            if isinstance(value, Told):
                value, word = value.value, value.word
            if isinstance(value, float) and not isfinite(value):
                word = f"{word}|no JSON number"
            shown = "missing" if value is DROP else str(value)[:24]
            name = f"{what}: {'.'.join(map(str, way))} {shown} ({type(value).__name__})"
            content = {**(files or {}), file: changed(document, way, value)}
            yield Malformed(name, arguments, content, (file, word))
