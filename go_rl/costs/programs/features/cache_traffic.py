"""`cache_traffic`: lines that a nest brings near the core, by its working sets.

The outermost loop whose working set (what all statements in it touch while it runs) fits into a
cache brings that set in once per run; a nest that fits as a whole brings nothing in, as it is run
again and again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from go_rl.costs.programs.features.loop_roles import LeafLoops


@dataclass(frozen=True)
class CacheLevel:
    """Cache level: a cache, or addresses of pages, near the core."""

    name: str
    lines: int
    """Lines, or pages, that it holds."""
    occupied: str
    """Field of `LeafLoops` that counts the lines or pages, by sets where it has some, that a loop
    occupies."""
    moved: str
    """Field of `LeafLoops` that says how many lines or pages a loop brings in."""
    cycles: float
    """Cycles to bring in one line or page."""


CACHES = (
    CacheLevel("first", 512, "first_sets", "lines", 2.0),
    CacheLevel("second", 1 << 14, "second_sets", "lines", 4.0),
    CacheLevel("third", 1 << 18, "lines", "lines", 8.0),
    CacheLevel("pages", 72, "pages", "pages", 7.0),
)
"""Caches of the processor that was measured (Zen 4); the third by core."""


@dataclass(frozen=True)
class WorkingSets:
    """Lines that are touched while a loop runs, and by the whole nest."""

    loops: dict[int, int]
    """Loops, by number of the loop."""
    whole: int


def working_sets(leaves: Sequence[LeafLoops], occupied: str) -> WorkingSets:
    """Return the working sets: of a buffer that several statements use, the largest part counts."""
    found: dict[int, dict[int, int]] = {}
    whole: dict[int, int] = {}
    for leaf in leaves:
        sizes = getattr(leaf, occupied).tolist()
        for buffer, lines in zip(leaf.buffers, sizes, strict=True):
            for (number, _), size in zip(leaf.leaf.around, lines, strict=True):
                of = found.setdefault(number, {})
                of[buffer] = max(of.get(buffer, 0), size)
            whole[buffer] = max(whole.get(buffer, 0), *lines, 1)
    return WorkingSets({n: sum(of.values()) for n, of in found.items()}, sum(whole.values()))


def cache_traffic(leaf: LeafLoops, sets: WorkingSets, level: CacheLevel) -> float:
    """Return the lines that one statement brings in."""
    if sets.whole <= level.lines:
        return 0.0
    moved = getattr(leaf, level.moved)
    for depth, (number, _) in enumerate(leaf.leaf.around):
        if sets.loops[number] <= level.lines:
            return float(prod(leaf.extents[:depth]) * int(moved[:, depth].sum()))
    return float(leaf.executions * len(leaf.buffers))
