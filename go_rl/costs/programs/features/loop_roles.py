"""`LeafLoops`: what each loop around a statement does to the elements that it reads and writes.

Strides are those of flat addresses, in elements, between the iterations 0 and 1 of one loop while
the others stand at 0: exact where indices are affine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import gcd, prod

import numpy as np
from jaxtyping import Int64

from go_rl.costs.programs.features.index_range import bounds_by_level
from go_rl.costs.programs.nests import Access, Index, LoopNest, LoopVariable, NestLeaf
from go_rl.costs.programs.nests.index import loops_in
from go_rl.costs.programs.nests.nest import VECTORISED

LINE, PAGE = 16, 1024
"""Elements of a cache line and of a page of memory."""
FIRST_SETS, SECOND_SETS = 64, 2048
"""Sets of the first and the second cache of the processors measured."""
TOUCHED = ("lines", "first_sets", "second_sets", "pages")


@dataclass(frozen=True, eq=False)
class LeafLoops:
    """A statement with ``D`` loops around, the outermost first, and ``A`` distinct accesses, of
    which the first is the write."""

    leaf: NestLeaf
    extents: tuple[int, ...]
    """[D] iterations of each loop."""
    vectorised: tuple[bool, ...]
    """[D] loops annotated as vectorised."""
    reduces: tuple[bool, ...]
    """[D] whether the loop adds to the same elements: it lies inside of the written buffer's
    allocation, and the write does not depend on it."""
    buffers: tuple[int, ...]
    """[A] number of the buffer."""
    named: tuple[tuple[bool, ...], ...]
    """[A, D] whether the access depends on the loop."""
    strides: Int64[np.ndarray, "A D"]
    """[A, D] stride of each access along each loop, elements."""
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
        """Number of loops ``D``."""
        return len(self.extents)

    @property
    def executions(self) -> int:
        """Number of times that the statement is executed."""
        return prod(self.extents)

    def walks(self, loop: int) -> bool:
        """Return whether a loop writes neighbours, one after the other, from what stands still or
        are neighbours: what vector operations can do."""
        write, *reads = self.strides[:, loop].tolist()
        return self.extents[loop] > 1 and write == 1 and all(step in (0, 1) for step in reads)


def leaf_loops(nest: LoopNest, leaf: NestLeaf) -> LeafLoops:
    """Return what the loops around a statement of a nest do."""
    statement = leaf.statement
    accesses = list(dict.fromkeys((statement.write, *statement.reads)))
    around = [(number, loop.extent) for number, loop in leaf.around]
    shapes = [nest.buffers[each.buffer].shape for each in accesses]
    named = tuple(_named(each, around) for each in accesses)
    inside = nest.buffers[statement.write.buffer].inside
    allocated = next((d + 1 for d, (number, _) in enumerate(around) if number == inside), 0)
    pairs = list(zip(accesses, shapes, strict=True))
    size = (len(accesses), len(around))
    strides = np.array([_strides(access, shape, around) for access, shape in pairs], np.int64)
    touched = np.array([_touched(access, shape, around) for access, shape in pairs], np.int64)
    touched = touched.reshape(*size, len(TOUCHED))
    return LeafLoops(
        leaf=leaf,
        extents=tuple(extent for _, extent in around),
        vectorised=tuple(loop.annotation == VECTORISED for _, loop in leaf.around),
        reduces=tuple(d >= allocated and not named[0][d] for d in range(len(around))),
        buffers=tuple(each.buffer for each in accesses),
        named=named,
        strides=strides.reshape(size),
        **{name: touched[:, :, k] for k, name in enumerate(TOUCHED)},
    )


def _flat(shape: Sequence[int]) -> list[int]:
    """Elements between neighbours, by dimension."""
    return [prod(shape[d + 1 :]) for d in range(len(shape))]


def _named(access: Access, around: Sequence[tuple[int, int]]) -> tuple[bool, ...]:
    seen = {number for index in access.index for number in loops_in(index)}
    return tuple(number in seen for number, _ in around)


def _strides(access: Access, shape: Sequence[int], around: Sequence[tuple[int, int]]) -> list[int]:
    count = len(around)
    one = np.eye(count + 1, dtype=np.int64)
    loops = {number: one[d] for d, (number, _) in enumerate(around)}
    address = np.zeros(count + 1, np.int64)
    for index, size in zip(access.index, _flat(shape), strict=True):
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
    access: Access, shape: Sequence[int], around: Sequence[tuple[int, int]]
) -> list[tuple[int, ...]]:
    """`TOUCHED` while each loop runs. What is touched is a box; its dimensions behind the last
    that is not touched as a whole are contiguous: *runs*."""
    if not around:
        return []
    bounds = [bounds_by_level(index, around) for index in access.index]
    flat, found = _flat(shape), []
    for level in range(len(around)):
        box = [
            min(max(each[level][1] - each[level][0] + 1, 1), size)
            for each, size in zip(bounds, shape, strict=True)
        ]
        partial = [d for d in range(len(box)) if box[d] < shape[d]]
        first = partial[-1] if partial else 0
        rows = [(box[d], flat[d]) for d in range(first) if box[d] > 1]
        found.append(_sizes(prod(box[first:]), rows))
    return found


def _sizes(run: int, rows: Sequence[tuple[int, int]]) -> tuple[int, ...]:
    """`TOUCHED` of a run of elements that is repeated: counts and strides."""
    long, count = -(-run // LINE), prod(n for n, _ in rows)
    pages = -(-run // PAGE) * prod(n if s >= PAGE else max(n * s // PAGE, 1) for n, s in rows)
    lines = count * long
    sets = [lines * all_ // _reached(rows, long, all_) for all_ in (FIRST_SETS, SECOND_SETS)]
    return lines, *sets, pages


def _reached(rows: Sequence[tuple[int, int]], long: int, sets: int) -> int:
    """Sets in which runs of this many lines lie: addresses keep what divides all strides."""
    if not rows:
        return sets
    step = gcd(sets, *(s // LINE if s % LINE == 0 else 1 for _, s in rows))
    return sets // step * min(step, long)
