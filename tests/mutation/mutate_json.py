"""Mutants of JSON: values of another type or size, keys dropped, renamed and repeated."""

import copy
import json
from typing import Any

from .values import WORDS, Rng, broken_bytes, extreme, pick

LARGEST = 1e270
"""Numbers up to this size stay finite when they are multiplied."""
Site = tuple[Any, Any]
"""A container and the key or index of one of its entries."""


def mutate_json(document: Any, rng: Rng) -> bytes:
    """Return ``document`` as text after one to three changes; some are of the text itself."""
    document = copy.deepcopy(document)
    for _ in range(int(rng.integers(1, 4))):
        found = sites(document)
        if found:
            change_site(pick(rng, found), rng)
    text = json.dumps(document)
    if rng.random() < 0.15:
        text = _raw(text, rng)
    data = text.encode("utf-8", "surrogatepass")
    return broken_bytes(data, rng) if rng.random() < 0.1 else data


def sites(document: Any) -> list[Site]:
    """Return every entry of every container inside."""
    found: list[Site] = []
    stack = [document]
    while stack:
        top = stack.pop()
        entries = top.items() if isinstance(top, dict) else enumerate(top)
        for key, value in entries:
            found.append((top, key))
            if isinstance(value, dict | list):
                stack.append(value)
    return found


def change_site(site: Site, rng: Rng) -> None:
    """Replace, drop, rename or repeat one entry in place."""
    container, key = site
    match int(rng.integers(8)):
        case 0:
            del container[key]
        case 1 if isinstance(container, dict):
            container[pick(rng, WORDS)] = container.pop(key)
        case 1:
            container.insert(key, copy.deepcopy(container[key]))
        case 2:
            other = pick(rng, sites(container))
            container[key] = copy.deepcopy(other[0][other[1]])
        case 3:
            container[key] = [container[key]]
        case 4 if isinstance(container[key], int | float) and abs(container[key]) < LARGEST:
            container[key] = container[key] * pick(rng, (-1, 0.5, 1.0000001, 1e30, 2))
        case _:
            container[key] = extreme(rng)


def _raw(text: str, rng: Rng) -> str:
    """Change what `json.dumps` would never write: bare words, repeated keys, deep nesting."""
    at = int(rng.integers(len(text)))
    match int(rng.integers(4)):
        case 0:
            return text.replace(": ", ": NaN, ", 1) if rng.random() < 0.5 else text[:at] + "NaN"
        case 1:
            depth = pick(rng, (10, 900, 5000, 200_000))
            return text.replace(": ", ": " + "[" * depth + "]" * depth + ', "z": ', 1)
        case 2:
            return text[:1] + text[1:].split(", ")[0] + ", " + text[1:]
        case _:
            return text.replace(": 1", ": 1" + "0" * pick(rng, (20, 310, 5000)), 1)
