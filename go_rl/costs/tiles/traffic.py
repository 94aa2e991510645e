"""Traffic of a loop nest: data touched at each of its depths, and the bytes moved between caches.

The classical argument (Wolf and Lam, "A data locality optimizing algorithm", PLDI 1991; Ghosh,
Martonosi and Malik, "Cache miss equations", TOPLAS 1999, without their conflicts): the inner loops
whose data fit a cache load them once; every iteration of the loops outside loads again what it
moves to.
"""

from __future__ import annotations

from functools import lru_cache
from math import ceil, prod

from go_rl.costs.operator_sizes import FLOAT_BYTES
from go_rl.costs.tiles.loops import Operand
from go_rl.costs.tiles.tiled_program import TiledProgram

LINE_BYTES = 64


def ranges_inside(tiled: TiledProgram, depth: int) -> dict[str, int]:
    """Return how many iterations of each loop of the program run in one iteration of the ``depth``
    outermost loops of the nest."""
    inside = {loop.name: 1 for loop in tiled.program.loops}
    for x in reversed(tiled.nest[depth:]):
        full = tiled.program.loop(x.loop).extent
        inside[x.loop] = (full, tiled.cache[x.loop], tiled.register[x.loop])[x.level]
    return inside


def footprint(tiled: TiledProgram, operand: Operand, ranges: dict[str, int]) -> int:
    """Return bytes of the cache lines of an operand that the given iterations touch.

    The gaps that a convolution's stride leaves count as touched.
    """
    sizes = [1 + sum(step * (ranges[name] - 1) for name, step in d) for d in operand.index]
    if operand.is_result and tiled.has_partial_sums:
        sizes.append(tiled.lanes)
    lines = ceil(sizes[-1] * FLOAT_BYTES / LINE_BYTES)
    return prod(sizes[:-1]) * lines * LINE_BYTES


@lru_cache(maxsize=8)
def footprints(tiled: TiledProgram) -> tuple[tuple[int, ...], ...]:
    """Return bytes of each operand that one iteration of the ``d`` outermost loops touches, for
    every depth ``d`` from none to all."""
    return tuple(
        tuple(footprint(tiled, operand, ranges) for operand in tiled.program.operands)
        for ranges in (ranges_inside(tiled, depth) for depth in range(len(tiled.nest) + 1))
    )


def fitting_depth(tiled: TiledProgram, capacity: float) -> int:
    """Return the least depth whose data fit ``capacity`` bytes; the whole nest's if none fits."""
    sizes = footprints(tiled)
    return next((d for d, bytes_ in enumerate(sizes) if sum(bytes_) <= capacity), len(sizes) - 1)


def traffic(tiled: TiledProgram, capacity: float) -> float:
    """Return bytes that one run of the heavy operator moves into and out of a cache.

    A run follows another: data that fit the cache all together are there already.
    """
    depth = fitting_depth(tiled, capacity)
    if depth == 0:
        return 0.0
    touched = zip(tiled.program.operands, footprints(tiled)[depth], strict=True)
    return sum(
        (2.0 if operand.is_result else 1.0) * size * _loads(tiled, operand, depth)
        for operand, size in touched
    )


def _loads(tiled: TiledProgram, operand: Operand, depth: int) -> float:
    """Times that the loops outside of ``depth`` load an operand: consecutive iterations of loops
    that it does not move in find it still there."""
    moving = {name for dimension in operand.index for name, _ in dimension}
    outside = list(tiled.nest[:depth])
    while outside and (outside[-1].loop not in moving or outside[-1].trips == 1):
        outside.pop()
    return float(prod(x.trips for x in outside))
