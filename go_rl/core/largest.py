"""`name_largest`: the largest of some things that take memory, in words."""

from __future__ import annotations

import heapq
from collections.abc import Iterable

NAMED = 3
"""Things that a message names."""


def name_largest(things: Iterable[tuple[str, float]]) -> str:
    """Return ``weights of 'a' 9e+06, result of 'b' 300``: the `NAMED` largest of some things with
    their bytes, of equal ones the first; empty when none weighs anything."""
    heavy = ((what, size) for what, size in things if size > 0)
    largest = heapq.nlargest(NAMED, heavy, key=lambda thing: thing[1])
    return ", ".join(f"{what} {size:.6g}" for what, size in largest)
