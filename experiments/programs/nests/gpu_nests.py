"""`nest_of_product`, `nest_of_elementwise`, `nest_of_reduction`: loop nests of GPU kernels from
sizes, block tiles and thread tiles.

They stand for kernels whose code is not at hand. A tile need not divide its loop: the last one is
partial in truth, and as large as the others here. `nests_of_operators` makes nests of a table of
operators: a product is tiled as its kernel's name says, or in `ProductTiling` where that is
unknown; a convolution is the product of its unfolded image; a stream is one loop over its elements;
softmax and layer norm reduce a row twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from go_rl.costs.operators.tables import PRODUCTS, OperatorRows
from go_rl.costs.operators.tables.operator_rows import TWO_INPUTS
from go_rl.costs.programs.nests.check_nest import check_nest
from go_rl.costs.programs.nests.errors import NestError
from go_rl.costs.programs.nests.index import Index, IndexOperation, LoopVariable
from go_rl.costs.programs.nests.nest import (
    OPERATION_NAMES,
    SERIAL,
    UNROLLED,
    Access,
    ForLoop,
    LoopNest,
    NestBuffer,
    Statement,
)

SHARED, LOCAL = "shared", "local"
Node = ForLoop | Statement


@dataclass(frozen=True)
class ProductTiling:
    """How a product is cut over blocks and threads."""

    block: tuple[int, int] = (64, 64)
    """Rows and columns of a block."""
    thread: tuple[int, int] = (4, 4)
    """Rows and columns of a thread; they divide those of the block."""
    depth: int = 8
    """Steps of the sum between two loads into shared memory."""

    def __post_init__(self) -> None:
        for block, thread in zip(self.block, self.thread, strict=True):
            if min(block, thread, self.depth) < 1 or block % thread:
                raise NestError(f"tiles must be >= 1, and threads' divide blocks': {self}")


def operation_counts(**counts: int) -> tuple[int, ...]:
    """Return operations of a statement by kind, such as ``float_mul=1, float_add_sub=1``.

    Raises:
        NestError: an unknown kind.
    """
    unknown = set(counts) - set(OPERATION_NAMES)
    if unknown:
        raise NestError(f"unknown operation {min(unknown)!r}: {', '.join(OPERATION_NAMES)}")
    return tuple(counts.get(name, 0) for name in OPERATION_NAMES)


def nest_of_product(
    batch: int, rows: int, columns: int, depth: int, tiling: ProductTiling | None = None
) -> LoopNest:
    """Return the nest of C[b, m, n] = sum A[b, m, k] B[b, k, n] that stages both operands in
    shared memory and keeps a thread's sums in registers.

    Raises:
        NestError: a size below 1.
    """
    cut = tiling or ProductTiling()
    (tall, wide), (high, broad) = cut.block, cut.thread
    slab = min(cut.depth, depth)
    threads = (tall // high, wide // broad)
    count = threads[0] * threads[1]
    z, y, x, ty, tx, ko = map(LoopVariable, range(6))
    buffers = (
        NestBuffer("A", (batch, rows, depth)), NestBuffer("B", (batch, depth, columns)),
        NestBuffer("C", (batch, rows, columns)), NestBuffer("A_shared", (tall, slab), SHARED, 2),
        NestBuffer("B_shared", (slab, wide), SHARED, 2), NestBuffer("sum", (high, broad), LOCAL, 4),
    )  # fmt: skip
    lane = plus(times(ty, threads[1]), tx)

    def staged(target: int, source: int, loop: int, columns_: int, row: Index, at: Index) -> Node:
        place = plus(times(LoopVariable(loop), count), lane)
        i, j = IndexOperation("//", place, columns_), IndexOperation("%", place, columns_)
        read = Access(source, (z, plus(row, i), plus(at, j)))
        loops = ceil_div(buffers[target].elements, count)
        return ForLoop(loops, SERIAL, (Statement(Access(target, (i, j)), (read,)),))

    fetch = (
        staged(3, 0, 6, slab, times(y, tall), times(ko, slab)),
        staged(4, 1, 7, wide, times(ko, slab), times(x, wide)),
    )
    k, m, n = map(LoopVariable, (8, 9, 10))
    total = Access(5, (m, n))
    reads = (
        total, Access(3, (plus(times(ty, high), m), k)), Access(4, (k, plus(times(tx, broad), n)))
    )  # fmt: skip
    add = Statement(total, reads, operation_counts(float_mul=1, float_add_sub=1))
    inner = around([(slab, SERIAL), (high, UNROLLED), (broad, UNROLLED)], (add,))
    m, n = LoopVariable(11), LoopVariable(12)
    row = plus(plus(times(y, tall), times(ty, high)), m)
    column = plus(plus(times(x, wide), times(tx, broad)), n)
    store = Statement(Access(2, (z, row, column)), (Access(5, (m, n)),))
    out = around([(high, UNROLLED), (broad, UNROLLED)], (store,))
    body = around(
        [
            (batch, "block.z"), (ceil_div(rows, tall), "block.y"),
            (ceil_div(columns, wide), "block.x"), (threads[0], "thread.y"),
            (threads[1], "thread.x"),
        ],
        (ForLoop(ceil_div(depth, slab), SERIAL, (*fetch, *inner)), *out),
    )  # fmt: skip
    return check_nest(LoopNest(buffers, body, gpu=True))


def nest_of_elementwise(
    elements: int,
    operands: int = 1,
    operations: Mapping[str, int] | None = None,
    threads: int = 256,
    per_thread: int = 1,
) -> LoopNest:
    """Return the nest of an operator of ``operands`` arrays, element by element.

    Args:
        elements: of each array.
        operands: arrays read.
        operations: of one element, by kind (`OPERATION_NAMES`); one addition if not given.
        threads: of a block.
        per_thread: elements of a thread, one block's width apart.

    Raises:
        NestError: a size below 1, or an unknown kind.
    """
    block, thread, turn = map(LoopVariable, range(3))
    at = plus(times(plus(times(block, per_thread), turn), threads), thread)
    buffers = tuple(NestBuffer(f"operand{i}", (elements,)) for i in range(operands))
    counts = operation_counts(**(operations or {"float_add_sub": 1}))
    reads = tuple(Access(i, (at,)) for i in range(operands))
    statement = Statement(Access(operands, (at,)), reads, counts)
    loops = [
        (ceil_div(elements, threads * per_thread), "block.x"), (threads, "thread.x"),
        (per_thread, UNROLLED),
    ]  # fmt: skip
    result = NestBuffer("result", (elements,))
    return check_nest(LoopNest((*buffers, result), around(loops, (statement,)), gpu=True))


def nest_of_reduction(
    rows: int, columns: int, passes: int = 1, threads: int = 256, writes_rows: bool = False
) -> LoopNest:
    """Return the nest of reductions along rows: a block a row, each thread a strided share.

    Args:
        rows: reduced one by one.
        columns: of a row.
        passes: reductions of a row one after the other: 2 for softmax and layer norm.
        threads: of a block.
        writes_rows: whether each element is computed from the results and written, as by softmax
            and layer norm; else one number a row is.

    Raises:
        NestError: a size below 1.
    """
    block, thread = LoopVariable(0), LoopVariable(1)
    shape = (rows, columns) if writes_rows else (rows,)
    sums = tuple(NestBuffer(f"sum{i}", (threads,), SHARED, 0) for i in range(passes))
    buffers = (NestBuffer("given", (rows, columns)), NestBuffer("result", shape), *sums)
    share = ceil_div(columns, threads)

    def column(loop: int) -> Index:
        return plus(times(LoopVariable(loop), threads), thread)

    body: list[Node] = []
    for i in range(passes):
        total = Access(2 + i, (thread,))
        earlier = (Access(1 + i, (0,)),) if i else ()
        reads = (total, Access(0, (block, column(2 + i))), *earlier)
        work = operation_counts(float_add_sub=1 + bool(i), float_mul=int(bool(i)))
        body.append(ForLoop(share, SERIAL, (Statement(total, reads, work),)))
    last = Access(1 + passes, (0,))
    if writes_rows:
        at = (block, column(2 + passes))
        work = operation_counts(float_add_sub=1, float_mul=1)
        body.append(
            ForLoop(share, SERIAL, (Statement(Access(1, at), (Access(0, at), last), work),))
        )
    else:
        body.append(Statement(Access(1, (block,)), (last,)))
    nest = LoopNest(buffers, around([(rows, "block.x"), (threads, "thread.x")], tuple(body)), True)
    return check_nest(nest)


def around(loops: list[tuple[int, str]], body: tuple[Node, ...]) -> tuple[Node, ...]:
    """Return the body inside of loops, each an extent and an annotation, the outermost first."""
    for extent, annotation in reversed(loops):
        body = (ForLoop(extent, annotation, body),)
    return body


def plus(left: Index, right: Index) -> Index:
    """Return the sum of two indices."""
    return left if right == 0 else IndexOperation("+", left, right)


def times(index: Index, factor: int) -> Index:
    """Return a multiple of an index."""
    return index if factor == 1 else IndexOperation("*", index, factor)


def ceil_div(size: int, tile: int) -> int:
    """Return the tiles that cover a loop."""
    return -(-size // tile)


ARITHMETIC: Mapping[str, Mapping[str, int]] = MappingProxyType({
    "add": {"float_add_sub": 1}, "addu": {"float_add_sub": 1}, "div": {"float_div_mod": 1},
    "divu": {"float_div_mod": 1}, "mul": {"float_mul": 1}, "mulu": {"float_mul": 1},
    "pow": {"float_math": 1}, "powu": {"float_math": 1}, "relu": {"float_compare": 1},
    "tanh": {"float_math": 1}, "gelu": {"float_mul": 3, "float_add_sub": 1, "float_math": 1},
})  # fmt: skip
"""Operations of an element of each stream, by kind."""
ROW_PASSES = 2
"""Reductions of a row: maximum and sum, or mean and variance."""
THREADS = 16
"""Rows, and columns, of the threads of a block of a product."""
Tile = tuple[int, int]
"""Columns and rows of a product that a block computes, multiples of `THREADS`."""


def nests_of_operators(rows: OperatorRows, tiles: Sequence[Tile | None]) -> list[LoopNest]:
    """Return the loop nest of each operator.

    Args:
        rows: [R] operators.
        tiles: [R] of products, those of the library where they are known.

    Raises:
        NestError: a size below 1, or a tile that threads do not divide.
    """
    products = np.stack(rows.products(), axis=1).astype(np.int64).tolist()
    height, width = (rows.sizes[name].tolist() for name in ("batch", "width"))
    return [
        _product(product, tile) if op in PRODUCTS else _stream(op, tall, wide)
        for op, product, tile, tall, wide
        in zip(rows.op.tolist(), products, tiles, height, width, strict=True)
    ]  # fmt: skip


def _product(sizes: Sequence[int], tile: Tile | None) -> LoopNest:
    batch, rows, columns, summed = sizes
    tiling = ProductTiling()
    if tile is not None:
        wide, tall = tile
        tiling = ProductTiling((tall, wide), (tall // THREADS, wide // THREADS))
    return nest_of_product(batch, rows, columns, summed, tiling)


def _stream(op: str, rows: int, columns: int) -> LoopNest:
    if op in ARITHMETIC:
        operands = 2 if op in TWO_INPUTS else 1
        return nest_of_elementwise(rows * columns, operands, ARITHMETIC[op])
    return nest_of_reduction(rows, columns, ROW_PASSES, writes_rows=True)
