"""`code_features`: what a compiler makes of each statement on a processor, and bounds of its time.

The 164 numbers of a leaf vector say how large loops are, not in what order they surround a
statement; yet that is what decides which code a processor runs. These numbers describe the
innermost loops one by one, the register tile, memory operations and what the caches move. From
them follow lower bounds of the time, in cycles; the largest is the statement's (a roofline:
Williams et al. 2009).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from jaxtyping import Float64

from go_rl.costs.programs.features.buffer_access import scaled
from go_rl.costs.programs.features.cache_traffic import (
    CACHES,
    WorkingSets,
    cache_traffic,
    working_sets,
)
from go_rl.costs.programs.features.compiled_loops import (
    STATEMENT_COST,
    unrolled_loops,
    vectorised_by_compiler,
)
from go_rl.costs.programs.features.leaf_vectors import described_leaves
from go_rl.costs.programs.features.loop_roles import LeafLoops, leaf_loops
from go_rl.costs.programs.features.register_tile import (
    ANNOTATED,
    CompiledLoops,
    Processor,
    RegisterTile,
    register_tile,
)
from go_rl.costs.programs.nests import OPERATION_NAMES, LoopNest

INNERMOST = 6
"""Loops of more than one iteration that are described one by one."""
READS = 2
"""Reads whose strides are told, those that touch most cache lines."""
PER_CYCLE = 2.0
"""Vector operations of 32 bytes, and loads, in a cycle."""
NATIVE_LANES = 8
"""Wider operations take as many more cycles."""
LATENCY = 4.0
"""Cycles of a dependent multiplication and addition."""
BOUNDS = ("arithmetic", "chain", "loads", "stores", *(level.name for level in CACHES))
LINEAR = ("lanes", "vectors", "loops", "hot_reduces")
"""Linear features of `RegisterTile`; the rest is log2(x + 1), as all counts are."""
TILE = tuple(field.name for field in fields(RegisterTile))
_LOOP = ("extent", "vectorised", "reduces", "write_stride", "read0_stride", "read1_stride")
_CODE = ("spilled", "ragged", "vector_width", "power_of_two", "loads_each", "stores_each",
         "auto_unroll", "conditions", "divisions")  # fmt: skip
CODE_NAMES = (
    *(f"loop{k}_{name}" for k in range(INNERMOST) for name in _LOOP),
    *(f"tile_{name}" for name in TILE),
    *_CODE,
    *(f"loop{k}_{name}" for name in ("instructions", "lines", "pages") for k in range(INNERMOST)),
    "whole_lines", "whole_pages",
    *(f"{name}_cycles" for name in BOUNDS), "cycles",
)  # fmt: skip
"""Name of each number of `code_features`; loop 0 is the innermost."""
CODE_NUMBERS = len(CODE_NAMES)


@dataclass(frozen=True)
class _Nest:
    """Nest data that all its statements share."""

    processor: Processor
    compiled: CompiledLoops
    sets: tuple[WorkingSets, ...]
    """Working sets of each of `CACHES`."""


def code_features(nest: LoopNest, processor: Processor) -> Float64[np.ndarray, "L numbers"]:
    """Return [L, numbers] `CODE_NAMES` of the statements that have leaf vectors, in the order of
    `go_rl.costs.programs.features.compact_ast`.

    Args:
        nest: of a program for processors.
        processor: for which code is compiled.
    """
    leaves = [leaf_loops(nest, leaf) for leaf in nest.leaves]
    unrolled = unrolled_loops(nest, processor.lanes)
    compiled = CompiledLoops(unrolled, vectorised_by_compiler(nest, leaves, unrolled))
    shared = _Nest(
        processor, compiled, tuple(working_sets(leaves, level.occupied) for level in CACHES)
    )
    places = [leaf.leaf for leaf in described_leaves(nest)]
    rows = [_numbers(leaves[place], shared) for place in sorted(places)]
    return np.array(rows, np.float64).reshape(-1, CODE_NUMBERS)


def _numbers(leaf: LeafLoops, nest: _Nest) -> list[float]:
    tile = register_tile(leaf, nest.processor, nest.compiled)
    order = [d for d in reversed(range(leaf.depth)) if leaf.extents[d] > 1][:INNERMOST]
    vector = next((d for d in range(leaf.depth) if leaf.vectorised[d]), None)
    width = leaf.extents[vector] if vector is not None and tile.vectors == ANNOTATED else 0
    bounds = _bounds(leaf, tile, nest)
    return [
        *_loops(leaf, order),
        *(
            float(getattr(tile, name)) if name in LINEAR else scaled(getattr(tile, name))
            for name in TILE
        ),
        *_code(leaf, tile, width, nest.processor),
        *_instructions(leaf, order, -(-width // nest.processor.lanes) or 1),
        *(number for k in (0, -1) for number in _sets(leaf, order, nest.sets[k])),
        scaled(nest.sets[2].whole),
        scaled(nest.sets[-1].whole),
        *map(scaled, bounds),
        scaled(max(bounds)),
    ]


def _loops(leaf: LeafLoops, order: Sequence[int]) -> list[float]:
    reads = sorted(range(1, len(leaf.buffers)), key=lambda a: -int(leaf.lines[a, :1].sum()))
    found: list[float] = []
    for d in order:
        strides = [scaled(int(leaf.strides[a, d])) for a in (0, *reads[:READS])]
        strides += [-1.0] * (READS + 1 - len(strides))
        role = (scaled(leaf.extents[d] - 1), float(leaf.vectorised[d]), float(leaf.reduces[d]))
        found += [*role, *strides]
    return _filled(found, len(_LOOP))


def _code(leaf: LeafLoops, tile: RegisterTile, width: int, processor: Processor) -> list[float]:
    counts = dict(zip(OPERATION_NAMES, leaf.leaf.statement.operations, strict=True))
    conditions = counts["int_compare"] + counts["select"] + counts["float_math"]
    return [
        tile.registers / processor.registers, width % processor.lanes / processor.lanes,
        scaled(width), float(width & (width - 1) == 0), tile.loads / tile.operations,
        tile.stores / tile.operations, scaled(leaf.leaf.auto_unroll), scaled(conditions),
        scaled(counts["int_div_mod"]),
    ]  # fmt: skip


def _instructions(leaf: LeafLoops, order: Sequence[int], pieces: int) -> list[float]:
    """Instructions of each loop, were all inside of it unrolled."""
    found, body = [], (STATEMENT_COST + len(leaf.buffers)) * pieces
    for d in order:
        body *= 1 if leaf.vectorised[d] else leaf.extents[d]
        found.append(scaled(body))
    return _filled(found, 1)


def _sets(leaf: LeafLoops, order: Sequence[int], sets: WorkingSets) -> list[float]:
    return _filled([scaled(sets.loops[leaf.leaf.around[d][0]]) for d in order], 1)


def _filled(numbers: list[float], each: int) -> list[float]:
    return numbers + [0.0] * (each * INNERMOST - len(numbers))


def _bounds(leaf: LeafLoops, tile: RegisterTile, nest: _Nest) -> list[float]:
    """Cycles by `BOUNDS`. A multiplication and an addition are one operation."""
    counts = zip(OPERATION_NAMES, leaf.leaf.statement.operations, strict=True)
    work = max(sum(count for name, count in counts if name.startswith("float")) / 2, 0.5)
    wide = max(nest.processor.lanes / NATIVE_LANES, 1.0)
    return [
        work * tile.operations / PER_CYCLE * wide,
        LATENCY * tile.chain,
        tile.loads / PER_CYCLE * wide,
        tile.stores * wide + tile.gathered,
        *(
            level.cycles * cache_traffic(leaf, sets, level)
            for sets, level in zip(nest.sets, CACHES, strict=True)
        ),
    ]
