"""Features of a configuration for a learned model, beside the kernel's graph: the tiles, and static
performance counts of the loop nest. Sizes, counts and seconds are base-2 logarithms.

Loops fill fixed places counted from the innermost, so that those of different operators that do the
same share a column: ``kept0`` is the result's last dimension, ``kept1`` the one before;
``summed0`` is the last reducing loop. A loop that a program lacks has extent and tiles 1.
"""

from __future__ import annotations

from functools import cache
from math import ceil, log2, prod

import numpy as np
from jaxtyping import Float64

from go_rl.costs.tiles.estimate import (
    CoreSheet,
    body_cycles,
    estimate_tiles,
    register_loads,
    sum_trips,
)
from go_rl.costs.tiles.loops import DIMENSIONS, Loop
from go_rl.costs.tiles.program import EPILOGUE_STEPS, TileProgram
from go_rl.costs.tiles.tiled_program import VECTOR_LANES, TiledProgram, Tiles, vector_width
from go_rl.costs.tiles.traffic import fitting_depth, footprints, traffic

KEPT, SUMMED = 4, 3
"""Most loops of a result, and most reducing loops."""
OPERANDS = ("left", "right", "result")
CACHES = ("l1", "l2", "l3")
CORE = CoreSheet()
"""The core whose constants the counts below assume: part of what a feature means."""


def tile_features(program: TileProgram, tiles: Tiles) -> Float64[np.ndarray, "F"]:
    """Return [F] the features of one configuration, named by `feature_names`.

    Raises:
        TileError: the tiles do not fit the program.
    """
    named = named_features(TiledProgram(program, tiles))
    return np.array(list(named.values()), np.float64)


@cache
def feature_names() -> tuple[str, ...]:
    """Return what each entry of `tile_features` is."""
    least = TiledProgram(TileProgram("matmul", (1, 1, 1)), Tiles((1, 1, 1), (1, 1, 1)))
    return tuple(named_features(least))


def named_features(tiled: TiledProgram) -> dict[str, float]:
    """Return the features of a configuration by name, always in the same order."""
    return {
        **_program_features(tiled.program),
        **_loop_features(tiled),
        **_count_features(tiled),
        **_footprint_features(tiled),
        **_traffic_features(tiled),
    }


def _program_features(program: TileProgram) -> dict[str, float]:
    """Features of the program: operator, epilogue, amount of work."""
    ops = {f"op_{op}": float(program.op == op) for op in DIMENSIONS}
    steps = {f"epilogue_{step}": float(step in program.steps) for step in EPILOGUE_STEPS}
    return (
        ops
        | steps
        | {
            "flops": log2(program.flops),
            "bytes": log2(program.bytes_accessed),
            "intensity": log2(program.flops / program.bytes_accessed),
            "outputs": log2(prod(program.output_shape)),
            "stride": float(program.dims.get("stride", 1)),
            "padding": float(program.dims.get("padding", 0)),
            "axis": float(program.dims.get("axis", 0)),
        }
    )


def _loop_features(tiled: TiledProgram) -> dict[str, float]:
    """Extents, tiles, numbers of tiles and remainders of each loop."""
    found: dict[str, float] = {}
    for place, loop in _places(tiled.program).items():
        extent = loop.extent if loop else 1
        cache = tiled.cache[loop.name] if loop else 1
        register = tiled.register[loop.name] if loop else 1
        found |= {
            f"{place}_extent": log2(extent),
            f"{place}_cache": log2(cache),
            f"{place}_register": log2(register),
            f"{place}_cache_tiles": log2(ceil(extent / cache)),
            f"{place}_register_tiles": log2(cache // register),
            f"{place}_remainder": extent % cache / cache,
        }
    return found


def _places(program: TileProgram) -> dict[str, Loop | None]:
    kept = [loop for loop in reversed(program.loops) if not loop.reduces]
    summed = [loop for loop in reversed(program.loops) if loop.reduces]
    groups = (("kept", KEPT, kept), ("summed", SUMMED, summed))
    return {
        f"{name}{i}": loops[i] if i < len(loops) else None
        for name, most, loops in groups
        for i in range(most)
    }


def _count_features(tiled: TiledProgram) -> dict[str, float]:
    """Flags, numbers of tiles, and what one register tile is made of."""
    width = vector_width(tiled.lanes)
    loads = sum(register_loads(tiled, x) for x in tiled.program.operands if not x.is_result)
    by_level = [prod(ceil(x.trips) for x in tiled.nest if x.level == level) for level in range(3)]
    return {
        "unroll": float(tiled.tiles.unroll),
        "reduction_outside": float(tiled.tiles.reduction_outside),
        "partial_sums": float(tiled.has_partial_sums),
        "cache_tiles": log2(by_level[0]),
        "register_tiles": log2(by_level[1]),
        "register_iterations": log2(by_level[2]),
        "vector_width": log2(width),
        "vector_fill": width / VECTOR_LANES / ceil(width / VECTOR_LANES),
        "vectors": log2(tiled.vectors),
        "body": log2(tiled.body),
        "unrolled_body": log2(tiled.body if tiled.tiles.unroll else tiled.vectors),
        "accumulators": log2(tiled.accumulators),
        "spilled": max(0.0, 1 - (CORE.registers - 2) / tiled.accumulators),
        "body_loads": log2(loads),
        "body_reuse": log2(tiled.body / loads),
        "chain": log2(tiled.body / tiled.accumulators),
        "sum_trips": log2(sum_trips(tiled)),
        "body_cycles": log2(body_cycles(tiled, CORE)),
    }


def _footprint_features(tiled: TiledProgram) -> dict[str, float]:
    """Bytes of each operand, and of all, in one register tile, one cache tile, and the whole."""
    size = len(tiled.program.loops)
    names = [operand.name for operand in tiled.program.operands]
    found: dict[str, float] = {}
    for level, depth in (("register", 2 * size), ("cache", size), ("whole", 0)):
        touched = dict(zip(names, footprints(tiled)[depth], strict=True))
        found |= {f"{level}_bytes_{name}": log2(1 + touched.get(name, 0)) for name in OPERANDS}
        found[f"{level}_bytes"] = log2(sum(touched.values()))
    return found


def _traffic_features(tiled: TiledProgram) -> dict[str, float]:
    """Features of the traffic between the caches, and the estimate's parts."""
    estimate = estimate_tiles(tiled, CORE)
    found: dict[str, float] = {}
    for name, (size, _) in zip(CACHES, CORE.caches, strict=True):
        moved = traffic(tiled, size)
        found[f"{name}_traffic"] = log2(1 + moved)
        found[f"{name}_intensity"] = log2(tiled.program.flops / (1 + moved))
        found[f"{name}_depth"] = fitting_depth(tiled, size) / len(tiled.nest)
    found["compute_seconds"] = log2(estimate.compute)
    for name, seconds in zip(CACHES, estimate.transfers, strict=True):
        found[f"{name}_seconds"] = log2(1e-9 + seconds)
    found["around_seconds"] = log2(1e-9 + estimate.around)
    found["estimate"] = log2(estimate.seconds)
    return found
