"""`LeafLoops`: what each loop around a statement does to the statement's accesses.

Strides are those of flat addresses, in elements, between the iterations 0 and 1 of one loop while
the others stand at 0: exact where indices are affine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import gcd, prod

import numpy as np
from jaxtyping import Int64

from go_rl.programs.features.index_range import bounds_by_level
from go_rl.programs.nests import Access, Index, LoopNest, LoopVariable, NestLeaf
from go_rl.programs.nests.index import loops_in
from go_rl.programs.nests.nest import VECTORISED

LINE, PAGE = 16, 1024
"""Elements of a cache line and of a page of memory."""
FIRST_SETS, SECOND_SETS = 64, 2048
"""Sets of the first and the second cache."""


@dataclass(frozen=True, eq=False)
class LeafLoops:
    """A statement with ``D`` loops around, the outermost first, and ``A`` distinct accesses, of
    which the first is the write."""

    leaf: NestLeaf
    extents: tuple[int, ...]
    """[D]"""
    vectorised: tuple[bool, ...]
    """[D] annotated so."""
    buffers: tuple[int, ...]
    """[A] number of the buffer."""
    strides: Int64[np.ndarray, "A D"]
    """[A, D] elements."""
    named: tuple[tuple[bool, ...], ...]
    """[A, D] whether the index depends on the loop."""
    reduces: tuple[bool, ...]
    """[D] whether the loop adds to the same elements: it lies inside of the written buffer's
    allocation, and its index does not depend on the loop."""
    lines: Int64[np.ndarray, "A D"]
    """[A, D] cache lines touched while the loop and those inside of it run."""
    first_sets: Int64[np.ndarray, "A D"]
    """[A, D] lines of a cache of `FIRST_SETS` sets that those occupy: more than they are where
    their addresses share few sets."""
    second_sets: Int64[np.ndarray, "A D"]
    """[A, D] likewise, of `SECOND_SETS`."""
    pages: Int64[np.ndarray, "A D"]
    """[A, D] pages of memory touched likewise."""

    @property
    def depth(self) -> int:
        """``D``."""
        return len(self.extents)

    @property
    def executions(self) -> int:
        """Number of times that the statement is executed."""
        return prod(self.extents)


def leaf_loops(nest: LoopNest, leaf: NestLeaf) -> LeafLoops:
    """Return what the loops around a statement do.

    Args:
        nest: of the statement.
        leaf: the statement in its place.
    """
    statement = leaf.statement
    accesses = list(dict.fromkeys((statement.write, *statement.reads)))
    around = [(number, loop.extent) for number, loop in leaf.around]
    flat = [_element_strides(nest.buffers[each.buffer].shape) for each in accesses]
    named = tuple(_named(each, around) for each in accesses)
    inside = nest.buffers[statement.write.buffer].inside
    allocated = next((d + 1 for d, (number, _) in enumerate(around) if number == inside), 0)
    touched = np.array(
        [
            _touched(each, around, nest.buffers[each.buffer].shape, flat[i])
            for i, each in enumerate(accesses)
        ],
        np.int64,
    ).reshape(len(accesses), len(around), 4)
    return LeafLoops(
        leaf,
        tuple(extent for _, extent in around),
        tuple(loop.annotation == VECTORISED for _, loop in leaf.around),
        tuple(each.buffer for each in accesses),
        np.array(
            [_strides(each, flat[i], around) for i, each in enumerate(accesses)], np.int64
        ).reshape(len(accesses), len(around)),
        named,
        tuple(d >= allocated and not named[0][d] for d in range(len(around))),
        *(touched[:, :, k] for k in range(4)),
    )


def _element_strides(shape: Sequence[int]) -> list[int]:
    return [prod(shape[d + 1 :]) for d in range(len(shape))]


def _named(access: Access, around: Sequence[tuple[int, int]]) -> tuple[bool, ...]:
    seen = {number for index in access.index for number in loops_in(index)}
    return tuple(number in seen for number, _ in around)


def _strides(
    access: Access, flat: Sequence[int], around: Sequence[tuple[int, int]]
) -> list[int]:
    count = len(around)
    loops = {number: np.eye(count + 1, dtype=np.int64)[d] for d, (number, _) in enumerate(around)}
    address = np.zeros(count + 1, np.int64)
    for index, size in zip(access.index, flat, strict=True):
        address = address + size * _values(index, loops)
    return (address[:count] - address[count]).tolist()


def _values(index: Index, loops: Mapping[int, np.ndarray]) -> np.ndarray | int:
    """An expression where one loop stands at 1, for each loop; last, where none does."""
    if isinstance(index, int):
        return index
    if isinstance(index, LoopVariable):
        return loops[index.loop]
    left, right = _values(index.left, loops), _values(index.right, loops)
    match index.kind:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case "//":
            return left // right
        case "%":
            return left % right
        case "min":
            return np.minimum(left, right)
    return np.maximum(left, right)


def _touched(
    access: Access, around: Sequence[tuple[int, int]], shape: Sequence[int], flat: Sequence[int]
) -> list[tuple[int, int, int, int]]:
    """Lines, those of both caches' sets, and pages while each loop runs: a box by
    `bounds_by_level`; dimensions behind the last that is not touched as a whole are contiguous."""
    if not around:
        return []
    boxes = [
        [high - low + 1 for low, high in bounds_by_level(index, around)] for index in access.index
    ]
    found = []
    for level in range(len(around)):
        box = [min(max(sizes[level], 1), full) for sizes, full in zip(boxes, shape, strict=True)]
        run, d = 1, len(box)
        while d > 0:
            d -= 1
            run *= box[d]
            if box[d] < shape[d]:
                break
        rows = [(box[k], flat[k]) for k in range(d) if box[k] > 1]
        count, lines = prod(n for n, _ in rows), -(-run // LINE)
        pages = -(-run // PAGE) * prod(n if s >= PAGE else max(n * s // PAGE, 1) for n, s in rows)
        found.append((
            count * lines, count * lines * FIRST_SETS // _reached(rows, lines, FIRST_SETS),
            count * lines * SECOND_SETS // _reached(rows, lines, SECOND_SETS), pages,
        ))  # fmt: skip
    return found


def _reached(rows: Sequence[tuple[int, int]], lines: int, sets: int) -> int:
    """Sets in which runs of so many lines lie, given count and stride of the runs: their strides'
    greatest common divisor with the sets is kept."""
    if not rows:
        return sets
    step = sets
    for _, stride in rows:
        step = gcd(step, stride // LINE if stride % LINE == 0 else 1)
    return sets // step * min(step, lines)
