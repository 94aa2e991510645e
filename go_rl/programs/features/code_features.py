"""`code_features`: what the compiler makes of each statement on a processor, and bounds of its time.

The 164 numbers of a leaf vector say how large loops are, not in what order they reach the
innermost statement; nearly all of what a schedule changes on a processor is there. These numbers
name the innermost loops one by one, the register tile, memory operations and the traffic between
caches; from them follow lower bounds of the time in cycles, of which the largest is the
statement's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from jaxtyping import Float64

from go_rl.programs.features.cache_traffic import CACHES, WorkingSets, cache_traffic, working_sets
from go_rl.programs.features.loop_roles import LeafLoops, leaf_loops
from go_rl.programs.features.register_tile import ANNOTATED, RegisterTile, register_tile, walked_loops
from go_rl.programs.features.unrolled_loops import STATEMENT_COST, UNROLL_BUDGET, unrolled_loops
from go_rl.programs.nests import OPERATION_NAMES, LoopNest
from go_rl.programs.nests.nest import ELEMENT_BYTES

INNERMOST = 6
"""Loops described one by one."""
READS = 2
"""Reads whose strides are told, those that touch most cache lines."""
OPERATIONS_PER_CYCLE = 2.0
"""Vector operations, loads too."""
LATENCY = 4.0
"""Cycles of a dependent multiplication and addition."""
VECTOR_REGISTERS = {4: 16, 8: 16, 16: 32}
"""By elements of a vector."""
BOUNDS = ("arithmetic", "chain", "loads", "stores", *(level.name for level in CACHES))


def _names() -> tuple[str, ...]:
    loop = ("extent", "vectorised", "reduces", "write_stride", *(f"read{r}_stride" for r in range(READS)))
    tile = [field.name for field in fields(RegisterTile)]
    return (
        *(f"loop{k}_{name}" for k in range(INNERMOST) for name in loop),
        *(f"tile_{name}" for name in tile),
        "spilled", "ragged", "vector_width", "power_of_two", "loads_per_operation", "stores_per_operation", "auto_unroll",
        "conditions", "divisions",
        *(f"{what}{k}" for what in ("cost", "set", "page") for k in range(INNERMOST)), "set_whole", "page_whole",
        *(f"{name}_cycles" for name in BOUNDS), "cycles",
    )


CODE_NAMES = _names()
"""Name of each number of `code_features`."""
LOGARITHMIC = frozenset({
    "tile_tile_size", "tile_hot_extent", "tile_accumulators", "tile_registers", "tile_reduced",
    "tile_operations", "tile_loads", "tile_stores", "tile_gathered", "tile_chain",
})


@dataclass(frozen=True, eq=False)
class CodeFeatures:
    vectors: Float64[np.ndarray, "L F"]
    cycles: Float64[np.ndarray, "L"]


def code_features(nest: LoopNest, lanes: int, budget: int = UNROLL_BUDGET) -> CodeFeatures:
    """[L, F] of every leaf of the nest (constants too), and cycles bound of each."""
    leaves = [leaf_loops(nest, leaf) for leaf in nest.leaves]
    sets = [working_sets(leaves, level.measure) for level in CACHES]
    unrolled = unrolled_loops(nest, lanes, budget)
    walked = walked_loops(leaves, [b.inside for b in nest.buffers], unrolled)
    rows, cycles = [], []
    for leaf in leaves:
        row, bound = _row(leaf, sets, lanes, unrolled, walked)
        rows.append(row); cycles.append(bound)
    return CodeFeatures(np.array(rows, np.float64), np.array(cycles))


def _log(x: float) -> float:
    return float(np.log2(abs(x) + 1.0))


def _row(leaf: LeafLoops, sets: Sequence[WorkingSets], lanes: int, unrolled, walked) -> tuple[list[float], float]:
    told = [loop.auto_unroll for _, loop in leaf.leaf.around if loop.auto_unroll]
    auto = told[-1] if told else 0
    tile = register_tile(leaf, lanes, VECTOR_REGISTERS[lanes], unrolled, walked)
    counts = dict(zip(OPERATION_NAMES, leaf.leaf.statement.operations, strict=True))
    order = [d for d in reversed(range(leaf.depth)) if leaf.extents[d] > 1][:INNERMOST]
    reads = sorted(range(1, len(leaf.buffers)), key=lambda a: -int(leaf.lines[a, 0]) if leaf.depth else 0)[:READS]
    row: list[float] = []
    for k in range(INNERMOST):
        if k >= len(order):
            row += [0.0] * (4 + READS); continue
        d = order[k]
        row += [_log(leaf.extents[d] - 1), float(leaf.vectorised[d]), float(leaf.reduces[d]), _log(leaf.strides[0, d])]
        row += [(_log(leaf.strides[reads[r], d]) if r < len(reads) else -1.0) for r in range(READS)]
    for field in fields(RegisterTile):
        value = float(getattr(tile, field.name))
        row.append(_log(value) if f"tile_{field.name}" in LOGARITHMIC else value)
    width = leaf.extents[next((d for d in range(leaf.depth) if leaf.vectorised[d]), 0)] if tile.kind == ANNOTATED else 0
    row += [
        tile.registers / VECTOR_REGISTERS[lanes], width % lanes / lanes if width else 0.0,
        _log(width), float(width & (width - 1) == 0),
        tile.loads / tile.operations, tile.stores / tile.operations, _log(auto),
        _log(counts["int_compare"] + counts["select"] + counts["float_math"]), _log(counts["int_div_mod"]),
    ]
    body = (STATEMENT_COST + len(leaf.buffers)) * (-(-width // lanes) if width else 1)
    for k in range(INNERMOST):
        if k < len(order):
            body *= 1 if leaf.vectorised[order[k]] else leaf.extents[order[k]]
        row.append(_log(body))
    for which in (sets[0], sets[-1]):
        row += [(_log(which.loops[leaf.leaf.around[order[k]][0]]) if k < len(order) else 0.0) for k in range(INNERMOST)]
    row += [_log(sets[2].whole), _log(sets[-1].whole)]
    scale = lanes / 8 if lanes > 8 else 1.0  # 512-bit operations are issued in two halves on Zen 4
    flops = max(sum(c for n, c in counts.items() if n.startswith("float")) / 2, 0.5)
    bounds = [
        flops * tile.operations / OPERATIONS_PER_CYCLE * scale, LATENCY * tile.chain,
        tile.loads / OPERATIONS_PER_CYCLE * scale, tile.stores * scale + tile.gathered,
        *(level.cycles * cache_traffic(leaf, of, level) for of, level in zip(sets, CACHES, strict=True)),
    ]
    best = max(bounds)
    return [*row, *map(_log, bounds), _log(best)], best
