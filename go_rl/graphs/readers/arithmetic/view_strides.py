"""Strides of an array by another shape: whether a reshape copies."""

from __future__ import annotations

from collections.abc import Sequence

Strides = tuple[int, ...] | None
"""Steps in memory, in elements, between neighbours along each axis; None: row by row."""


def row_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of an array that lies in memory row by row."""
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= max(1, extent)
    return tuple(reversed(strides))


def view_strides(
    shape: Sequence[int], strides: Sequence[int], target: Sequence[int]
) -> tuple[int, ...] | None:
    """Return the strides of an array by another shape, without a copy; None: it must be copied.

    Neighbouring axes that are joined or divided must lie in memory as one (``computeStride`` of
    ATen).
    """
    if 0 in shape:
        return row_strides(target)
    axis, size, wanted = len(target) - 1, 1, 1
    base = strides[-1] if strides else 1
    found = [base] * len(target)
    for d in range(len(shape) - 1, -1, -1):
        size *= shape[d]
        if d and (shape[d - 1] == 1 or strides[d - 1] == size * base):
            continue
        while axis >= 0 and (wanted < size or target[axis] == 1):
            found[axis] = wanted * base
            wanted *= target[axis]
            axis -= 1
        if wanted != size:
            return None
        size, wanted, base = 1, 1, strides[d - 1]
    return tuple(found) if all(extent == 1 for extent in target[: axis + 1]) else None
