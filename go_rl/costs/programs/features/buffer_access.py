"""Access of a statement to a buffer: bytes and cache lines touched, stride, reuse (group 2 of the
leaf vector)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np

from go_rl.costs.programs.features.index_range import bounds_by_level, index_stride
from go_rl.costs.programs.features.layout import (
    ACCESS_TYPES,
    BUFFER_NUMBERS,
    BUFFERS,
    CACHE_LINE,
    REUSE_TYPES,
)
from go_rl.costs.programs.nests import Index, NestBuffer, NestLeaf
from go_rl.costs.programs.nests.index import loops_in
from go_rl.costs.programs.nests.nest import ELEMENT_BYTES

READ, WRITE, READ_WRITE = ACCESS_TYPES
LOOP_REUSE, SERIAL_REUSE, NO_REUSE = REUSE_TYPES
NO_COUNT = 0.5
"""Divisor of numbers per reuse where nothing is reused."""


@dataclass
class Touched:
    """Elements that the statements so far have touched while a loop runs: of each loop and buffer,
    one number a statement."""

    elements: dict[int, dict[int, list[int]]] = field(default_factory=dict)

    def add(self, loop: int, buffer: int, elements: int) -> None:
        """Note what one more statement touches."""
        self.elements.setdefault(loop, {}).setdefault(buffer, []).append(elements)

    def bytes_under(self, loop: int) -> int:
        """Return the bytes of all statements and buffers."""
        return ELEMENT_BYTES * sum(map(sum, self.elements[loop].values()))


@dataclass(frozen=True)
class Reuse:
    """The innermost loop that comes back to the same elements."""

    kind: str = NO_REUSE
    count: int = 0
    iterations: float = 0.0
    """Iterations between two uses."""
    bytes: float = 0.0
    """Touched between two uses."""


@dataclass(frozen=True)
class BufferUse:
    """A buffer, as one statement uses it."""

    buffer: int
    access: str
    """Access type, one of `ACCESS_TYPES`."""
    indices: tuple[tuple[Index, ...], ...]
    """Each index into it; of a buffer that is written too, only that of the write."""
    touched: tuple[int, ...]
    """Elements touched while a loop runs, the outermost first."""
    shape: tuple[int, ...]
    """Extent, by dimension, of what all loops touch."""


@dataclass(frozen=True)
class UseFeatures:
    """Numbers of a buffer's use, as they come."""

    access: str
    bytes: float
    unique_bytes: float
    lines: float
    unique_lines: float
    stride: int
    """Stride of the innermost loop."""
    reuse: Reuse

    def numbers(self) -> list[float]:
        """Return the 18 numbers of the leaf vector."""
        per = self.reuse.count or NO_COUNT
        sizes = (self.bytes, self.unique_bytes, self.lines, self.unique_lines)
        reuse = (self.reuse.iterations, self.reuse.bytes, self.reuse.count)
        return [
            *(float(self.access == each) for each in ACCESS_TYPES),
            *(scaled(size) for size in sizes),
            *(float(self.reuse.kind == each) for each in REUSE_TYPES),
            *(scaled(each) for each in reuse),
            *(scaled(size / per) for size in sizes),
            scaled(self.stride),
        ]


def scaled(number: int | float) -> float:
    """Return log2(|x| + 1)."""
    return float(np.log2(abs(number) + 1))


def buffer_uses(leaf: NestLeaf, touched: Touched) -> list[BufferUse]:
    """Return the buffers of a statement, that which it writes first, and note what it touches."""
    around = [(number, loop.extent) for number, loop in leaf.around]
    found: list[BufferUse] = []
    for buffer, (access, indices) in _accesses(leaf).items():
        elements, shape = _regions(indices, around)
        for (loop, _), count in zip(around, elements, strict=True):
            touched.add(loop, buffer, count)
        found.append(BufferUse(buffer, access, tuple(indices), elements, shape))
    return found


def _accesses(leaf: NestLeaf) -> dict[int, tuple[str, list[tuple[Index, ...]]]]:
    write = leaf.statement.write
    found = {write.buffer: (WRITE, [write.index])}
    for read in leaf.statement.reads:
        access, indices = found.setdefault(read.buffer, (READ, []))
        if access == READ:
            indices.append(read.index)
        else:
            found[read.buffer] = (READ_WRITE, indices)
    return found


def _regions(
    indices: Sequence[tuple[Index, ...]], around: Sequence[tuple[int, int]]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return how many elements each loop touches, and the extents of what all touch."""
    dimensions = range(len(indices[0]))
    if not around:
        return (), tuple(1 for _ in dimensions)
    extents: list[list[int]] = []
    for d in dimensions:
        levels = [bounds_by_level(index[d], around) for index in indices]
        extents.append(
            [max(b[1] for b in at) - min(b[0] for b in at) + 1 for at in zip(*levels, strict=True)]
        )
    elements = tuple(max(0, prod(e[i] for e in extents)) for i in range(len(around)))
    return elements, tuple(e[0] for e in extents)


def use_features(
    uses: Sequence[BufferUse], leaf: NestLeaf, buffers: Sequence[NestBuffer], touched: Touched
) -> list[float]:
    """Return the numbers of the statement's buffers: `BUFFERS` times 18."""
    ranked = sorted(
        ((_features(use, leaf, buffers[use.buffer], touched, len(uses)), use) for use in uses),
        key=lambda pair: (-pair[0].lines, -pair[0].bytes, buffers[pair[1].buffer].name),
    )
    numbers = [number for features, _ in ranked[:BUFFERS] for number in features.numbers()]
    return numbers + [0.0] * (BUFFERS * BUFFER_NUMBERS - len(numbers))


def _features(
    use: BufferUse, leaf: NestLeaf, buffer: NestBuffer, touched: Touched, uses: int
) -> UseFeatures:
    stride, level = _strided_loop(use, leaf, buffer)
    innermost = stride if level == len(leaf.around) - 1 else 0
    reuse = _reuse(use, leaf, touched, uses)
    size = float(ELEMENT_BYTES * leaf.executions)
    if not leaf.around:
        return UseFeatures(use.access, size, 1.0, 1.0, 1.0, innermost, reuse)
    unstrided = prod(loop.extent for _, loop in leaf.around[level + 1 :])
    per_line = min(1.0, stride * ELEMENT_BYTES / CACHE_LINE)
    unique = float(use.touched[0] * ELEMENT_BYTES)
    return UseFeatures(
        access=use.access,
        bytes=size,
        unique_bytes=unique,
        lines=max(1.0, leaf.executions / unstrided * per_line),
        unique_lines=max(1.0, unique / min(CACHE_LINE, _contiguous_bytes(use, buffer))),
        stride=innermost,
        reuse=reuse,
    )


def _contiguous_bytes(use: BufferUse, buffer: NestBuffer) -> int:
    """Return the bytes of the last dimension that is touched as a whole; 1: none is."""
    for touched, size in zip(reversed(use.shape), reversed(buffer.shape), strict=True):
        if touched == size:
            return size * ELEMENT_BYTES
    return 1


def _strided_loop(use: BufferUse, leaf: NestLeaf, buffer: NestBuffer) -> tuple[int, int]:
    """Return the stride, elements, of the innermost loop that has one, and its place among those
    around; 0 and -1: none has."""
    strides = np.cumprod([1, *buffer.shape[:0:-1]])[::-1].tolist()
    for level in reversed(range(len(leaf.around))):
        if stride := _least_stride(use.indices, strides, leaf.around[level][0]):
            return stride, level
    return 0, -1


def _least_stride(indices: Sequence[tuple[Index, ...]], strides: Sequence[int], loop: int) -> int:
    found = []
    for index in indices:
        steps = [index_stride(at, loop) for at in index]
        last = next((d for d in reversed(range(len(index))) if steps[d]), None)
        if last is not None:
            found.append(abs(steps[last]) * strides[last])
    return min(found, default=0)


def _reuse(use: BufferUse, leaf: NestLeaf, touched: Touched, uses: int) -> Reuse:
    named = frozenset(n for index in use.indices for at in index for n in loops_in(at))
    around = leaf.around
    for level in reversed(range(len(around))):
        number, loop = around[level]
        if number not in named:
            last = level == len(around) - 1
            between = ELEMENT_BYTES * uses if last else touched.bytes_under(around[level + 1][0])
            inside = prod(inner.extent for _, inner in around[level + 1 :])
            return Reuse(LOOP_REUSE, loop.extent, float(inside), float(between))
        seen = touched.elements[number][use.buffer]
        if len(seen) >= 2:
            between = touched.bytes_under(number) / loop.extent
            return Reuse(SERIAL_REUSE, len(seen) - 1, min(seen) / loop.extent, between)
    return Reuse()


def bytes_by_level(uses: Sequence[BufferUse], levels: int) -> list[int]:
    """Return the bytes that a statement touches while a loop runs, the outermost first."""
    return [ELEMENT_BYTES * sum(use.touched[level] for use in uses) for level in range(levels)]
