"""`cache_traffic`: bytes that a nest moves into each level of cache, by its working sets.

The outermost loop whose working set (the cache lines that all statements in it touch while it runs)
fits into a cache brings that set in once per run; a nest that fits as a whole brings nothing, as
it is run again and again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from go_rl.programs.features.layout import CACHE_LINE
from go_rl.programs.features.loop_roles import LeafLoops

CACHES = (32 << 10, 1 << 20, 16 << 20)
"""Bytes of the caches of a core, the nearest first: of the processor that was measured, shared
ones by core."""


@dataclass(frozen=True)
class WorkingSets:
    """Working set of each loop of a nest, and of the whole."""

    loops: dict[int, int]
    """Bytes by number of the loop."""
    whole: int
    """Bytes."""


def working_sets(leaves: Sequence[LeafLoops]) -> WorkingSets:
    """Return the working sets: of a buffer that several statements use, the largest part counts."""
    found: dict[int, dict[int, int]] = {}
    whole: dict[int, int] = {}
    for leaf in leaves:
        for a, buffer in enumerate(leaf.buffers):
            for level, (number, _) in enumerate(leaf.leaf.around):
                of = found.setdefault(number, {})
                of[buffer] = max(of.get(buffer, 0), int(leaf.lines[a, level]))
            lines = int(leaf.lines[a, 0]) if leaf.depth else 1
            whole[buffer] = max(whole.get(buffer, 0), lines)
    return WorkingSets(
        {number: CACHE_LINE * sum(of.values()) for number, of in found.items()},
        CACHE_LINE * sum(whole.values()),
    )


def cache_traffic(leaf: LeafLoops, sets: WorkingSets, cache: int) -> float:
    """Return the bytes that one statement brings into a cache of so many bytes."""
    if sets.whole <= cache:
        return 0.0
    for level, (number, _) in enumerate(leaf.leaf.around):
        if sets.loops[number] <= cache:
            runs = prod(leaf.extents[:level])
            return float(CACHE_LINE * runs * int(leaf.lines[:, level].sum()))
    return float(CACHE_LINE * leaf.executions * len(leaf.buffers))
