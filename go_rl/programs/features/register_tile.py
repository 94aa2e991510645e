"""`RegisterTile`: what a compiler for processors keeps in registers around a statement.

The innermost loops that the compiler unrolls are the *tile*; the loop around them is the *hot*
loop. A statement that is not vectorised by annotation becomes so where the hot loop, or the
innermost one, walks all accesses by 0 or 1 elements (as LLVM's loop vectoriser does). An access
that the hot loop does not move is kept in registers over it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from go_rl.programs.features.loop_roles import LeafLoops

SCALAR, ANNOTATED, BY_LOOP, BY_STATEMENTS = range(4)


@dataclass(frozen=True)
class RegisterTile:
    """The code of one statement, its counts per whole execution of the nest."""

    lanes: int
    """Elements of a vector operation; 1: scalar code."""
    kind: int
    """`SCALAR`, or what makes vectors: `ANNOTATED` loop, `BY_LOOP` or `BY_STATEMENTS` of the
    compiler's own."""
    tile_loops: int
    """Loops in the tile."""
    tile_size: int
    """Executions of the statement in it."""
    hot_extent: int
    """Iterations of the hot loop; 1: the tile is all."""
    hot_reduces: bool
    accumulators: int
    """Vector registers that the written elements of a tile need."""
    registers: int
    """Those that all accesses of a tile need."""
    reduced: int
    """Iterations of reducing loops in the tile."""
    operations: float
    """Vector operations of the statement."""
    loads: float
    """Vector loads, those of an element that is read alone included."""
    stores: float
    gathered: float
    """Elements that are read or written alone to make vectors."""
    chain: float
    """Dependent operations, one behind the other."""


def register_tile(
    loops: LeafLoops, lanes: int, registers: int, unrolled: frozenset[int], walked: frozenset[int]
) -> RegisterTile:
    """Return the code of a statement.

    Args:
        loops: around the statement.
        lanes: elements that a vector holds.
        registers: vector registers of the processor.
        unrolled: numbers of the loops that are straight code.
        walked: numbers of the loops that the compiler vectorises by itself (`walked_loops`).
    """
    depth, extents = loops.depth, loops.extents
    numbers = [number for number, _ in loops.leaf.around]
    vector = next((d for d in range(depth) if loops.vectorised[d]), None)
    tile = depth if vector is None else vector
    while tile > 0 and numbers[tile - 1] in unrolled:
        tile -= 1
    hot = tile - 1 if tile > 0 else None
    by_annotation = vector is not None
    kind = ANNOTATED if by_annotation else SCALAR
    if vector is None and hot is not None and numbers[hot] in walked:
        vector, kind = hot, BY_LOOP
    if vector is None:
        steps = [d for d in range(tile, depth) if _walks(loops, d)]
        vector, kind = (max(steps, key=lambda d: extents[d]), BY_STATEMENTS) if steps else (None, SCALAR)
    width = extents[vector] if vector is not None else 1
    used = min(lanes, width) if by_annotation else 1 << min(lanes, width).bit_length() - 1
    pieces = -(-width // lanes) if by_annotation else 1  # registers of one statement
    inner = [d for d in range(tile, depth) if d != vector]
    return _counts(loops, _Shape(tile, hot, vector, used, pieces, kind, inner), registers)


def walked_loops(
    leaves: Sequence[LeafLoops], private: Sequence[int], unrolled: frozenset[int]
) -> frozenset[int]:
    """Return the loops, not unrolled, whose body is straight code in which each access moves by 0
    or 1 elements, and no statement adds to one element: LLVM vectorises them.

    Args:
        leaves: all statements of a nest.
        private: number of the innermost loop around the allocation of each buffer.
        unrolled: numbers of the loops that are straight code.
    """
    good: dict[int, bool] = {}
    for leaf in leaves:
        around = leaf.leaf.around
        hot = next((d for d in reversed(range(leaf.depth)) if around[d][0] not in unrolled), None)
        if hot is None:
            continue
        number = around[hot][0]
        inside = {n for n, _ in around[hot:]}
        moves = [
            int(leaf.strides[a, hot])
            for a, buffer in enumerate(leaf.buffers)
            if private[buffer] not in inside
        ]
        # a statement that writes elsewhere than the loop goes is a reduction, or a scatter
        fine = not leaf.vectorised[hot] and leaf.extents[hot] > 1
        fine = fine and (private[leaf.buffers[0]] in inside or int(leaf.strides[0, hot]) == 1)
        fine = fine and all(s in (0, 1) for s in moves)
        good[number] = good.get(number, True) and fine
    return frozenset(number for number, fine in good.items() if fine)


@dataclass(frozen=True)
class _Shape:
    tile: int
    hot: int | None
    vector: int | None
    lanes: int
    pieces: int
    kind: int
    inner: list[int]


def _counts(loops: LeafLoops, shape: _Shape, registers: int) -> RegisterTile:
    extents, executions = loops.extents, loops.executions
    width = 1 if shape.vector is None else extents[shape.vector]
    whole, rest = divmod(width, shape.lanes)
    whole += (rest > 0) if shape.kind == ANNOTATED else rest
    vectors = executions / width * whole
    tile_size = prod(extents[d] for d in shape.inner)
    hot = 1 if shape.hot is None else extents[shape.hot]
    need, loads, stores, gathered = [], 0.0, 0.0, 0.0
    for a in range(len(loops.buffers)):
        kept = prod(extents[d] for d in shape.inner if loops.named[a][d])
        moved = shape.vector is None or bool(loops.named[a][shape.vector])
        kept *= shape.pieces if moved else 1
        need.append(kept)
        still = shape.hot is not None and shape.hot != shape.vector
        still = still and not loops.named[a][shape.hot or 0]
        fits = sum(need[:1]) <= registers
        share = tile_size * shape.pieces * (hot if still and fits else 1)
        times = vectors / share * kept
        alone = shape.vector is not None and abs(int(loops.strides[a, shape.vector])) > 1
        if alone:
            gathered += times * shape.lanes
        loads += times * (shape.lanes if alone else 1)
        stores += times * (shape.lanes if alone else 1) if a == 0 else 0.0
    reduced = prod(extents[d] for d in shape.inner if loops.reduces[d])
    hot_reduces = shape.hot is not None and loops.reduces[shape.hot]
    free = need[0] if hot_reduces else max(need[0], 1) * max(hot, 1)
    any_reduce = hot_reduces or reduced > 1
    chain = vectors / max(free, 1) if any_reduce else 0.0
    return RegisterTile(
        shape.lanes, shape.kind, len(shape.inner), tile_size, hot, hot_reduces, need[0],
        sum(need), reduced, vectors, loads, stores, gathered, chain,
    )  # fmt: skip


def _walks(loops: LeafLoops, loop: int) -> bool:
    moves = [int(s) for s in loops.strides[:, loop]]
    return loops.extents[loop] > 1 and moves[0] == 1 and all(s in (0, 1) for s in moves[1:])
