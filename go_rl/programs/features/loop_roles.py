"""`LeafLoops`: what each loop around a statement does to the statement's accesses.

Strides are those of flat addresses, in elements, between the iterations 0 and 1 of one loop while
the others stand at 0: exact where indices are affine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from jaxtyping import Int64

from go_rl.programs.features.index_range import bounds_by_level
from go_rl.programs.nests import Access, Index, LoopNest, LoopVariable, NestLeaf
from go_rl.programs.nests.index import loops_in
from go_rl.programs.nests.nest import VECTORISED


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
    elements: Int64[np.ndarray, "A D"]
    """[A, D] elements touched likewise."""

    @property
    def depth(self) -> int:
        """``D``."""
        return len(self.extents)

    @property
    def executions(self) -> int:
        """Number of times that the statement is executed."""
        return prod(self.extents)


def leaf_loops(nest: LoopNest, leaf: NestLeaf, line_elements: int = 16) -> LeafLoops:
    """Return what the loops around a statement do.

    Args:
        nest: of the statement.
        leaf: the statement in its place.
        line_elements: elements of a cache line.
    """
    statement = leaf.statement
    accesses = list(dict.fromkeys((statement.write, *statement.reads)))
    around = [(number, loop.extent) for number, loop in leaf.around]
    flat = [_element_strides(nest.buffers[each.buffer].shape) for each in accesses]
    named = tuple(_named(each, around) for each in accesses)
    inside = nest.buffers[statement.write.buffer].inside
    allocated = next((d + 1 for d, (number, _) in enumerate(around) if number == inside), 0)
    touched = [
        _touched(each, around, nest.buffers[each.buffer].shape, line_elements) for each in accesses
    ]
    shape = (len(accesses), len(around))
    return LeafLoops(
        leaf,
        tuple(extent for _, extent in around),
        tuple(loop.annotation == VECTORISED for _, loop in leaf.around),
        tuple(each.buffer for each in accesses),
        np.array(
            [_strides(each, flat[i], around) for i, each in enumerate(accesses)], np.int64
        ).reshape(shape),
        named,
        tuple(d >= allocated and not named[0][d] for d in range(len(around))),
        np.array([lines for lines, _ in touched], np.int64).reshape(shape),
        np.array([elements for _, elements in touched], np.int64).reshape(shape),
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
    access: Access, around: Sequence[tuple[int, int]], shape: Sequence[int], line: int
) -> tuple[list[int], list[int]]:
    """Cache lines and elements while each loop runs: a box by `bounds_by_level`; dimensions behind
    the last that is not touched as a whole are contiguous."""
    if not around:
        return [], []
    boxes = [
        [high - low + 1 for low, high in bounds_by_level(index, around)] for index in access.index
    ]
    lines, elements = [], []
    for level in range(len(around)):
        box = [min(max(sizes[level], 1), full) for sizes, full in zip(boxes, shape, strict=True)]
        run, d = 1, len(box)
        while d > 0:
            d -= 1
            run *= box[d]
            if box[d] < shape[d]:
                break
        elements.append(prod(box))
        lines.append(prod(box[:d]) * -(-run // line))
    return lines, elements
