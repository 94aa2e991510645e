"""`nest_of_product`: the loop nest of a product on a GPU from sizes, block tiles and thread tiles.

It stands for kernels whose code is not at hand. A tile need not divide its loop: the last one is
partial in truth, and as large as the others here.
"""

from __future__ import annotations

from dataclasses import dataclass

from go_rl.costs.programs.nests.check_nest import check_nest
from go_rl.costs.programs.nests.index import Index, IndexOperation, LoopVariable, NestError
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
