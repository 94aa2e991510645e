"""Counters of loops: the first trip at which a comparison with a limit fails."""

from __future__ import annotations

from typing import Literal

Comparison = Literal["LT", "LE", "GT", "GE", "EQ", "NE"]
MOST_TRIPS = 1 << 62
"""Trips of the longest loop that is followed."""


def first_failure(first: int, step: int, comparison: Comparison, limit: int) -> int | None:
    """Return the first trip ``t`` at which ``first + t * step`` does not compare so with ``limit``;
    None: it always does.
    """
    if comparison in ("GT", "GE"):
        mirrored: Comparison = "LT" if comparison == "GT" else "LE"
        return first_failure(-first, -step, mirrored, -limit)
    distance = limit - first
    match comparison:
        case "LE":
            return first_failure(first, step, "LT", limit + 1)
        case "LT" if distance <= 0:
            return 0
        case "LT":
            return -(-distance // step) if step > 0 else None
        case "EQ":
            return 0 if distance else 1 if step else None
    if not step:
        return None if distance else 0
    trips, rest = divmod(distance, step)
    return trips if trips >= 0 and not rest else None
