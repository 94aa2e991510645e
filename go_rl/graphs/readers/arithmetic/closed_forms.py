"""Closed forms: trips of counters, positions of windows, strides of views."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal


def floor_sum(n: int, m: int, a: int, b: int) -> int:
    """Return ``sum(floor((a i + b) / m) for i in range(n))`` for ``m >= 1``, in O(log m).

    The Euclidean algorithm on lattice points under a line (Graham, Knuth and Patashnik, *Concrete
    Mathematics*, section 3.5).
    """
    total = 0
    while n > 0:
        quotient, a = divmod(a, m)
        total += n * (n - 1) // 2 * quotient
        quotient, b = divmod(b, m)
        total += n * quotient
        top = a * n + b
        if top < m:
            break
        # Points under the line, counted by rows instead of columns.
        n, b = divmod(top, m)
        m, a = a, m
    return total


def pairs_at_most(outputs: int, taps: int, stride: int, dilation: int, limit: int) -> int:
    """Count pairs ``o < outputs``, ``k < taps`` with ``o * stride + k * dilation <= limit``.

    Strides and dilations are 1 or more.
    """
    if limit < 0 or outputs < 1:
        return 0
    taps = min(taps, limit // dilation + 1)
    # Taps up to here leave room for every output.
    room = limit - (outputs - 1) * stride
    full = min(taps, room // dilation + 1) if room >= 0 else 0
    rest = taps - full
    # sum of floor((limit - k dilation) / stride) + 1 over k = full .. taps - 1, from the last on.
    last = limit - (taps - 1) * dilation
    return full * outputs + rest + floor_sum(rest, stride, dilation, last)


def valid_pairs(outputs: int, taps: int, inputs: int, stride: int, dilation: int, pad: int) -> int:
    """Count (output, tap) pairs of one axis whose input ``o*stride + k*dilation - pad`` exists.

    Raises:
        ValueError: a stride or dilation below 1.
    """
    if stride < 1 or dilation < 1:
        raise ValueError(f"strides and dilations must be 1 or more, not {stride} and {dilation}")
    if taps < 1 or inputs < 1:
        return 0
    within = pairs_at_most(outputs, taps, stride, dilation, inputs - 1 + pad)
    return within - pairs_at_most(outputs, taps, stride, dilation, pad - 1)


Comparison = Literal["LT", "LE", "GT", "GE", "EQ", "NE"]
MOST_TRIPS = 1 << 62
"""Trips of the longest loop that is followed."""


def first_failure(first: int, step: int, comparison: Comparison, limit: int) -> int | None:
    """Return the first trip ``t`` at which ``first + t * step`` does not compare so with ``limit``;
    None: it always does.
    """
    if comparison in ("GT", "GE"):
        mirrored: Comparison = "LT" if comparison == "GT" else "LE"
        return first_failure(-first, -step, mirrored, -limit)
    distance = limit - first
    match comparison:
        case "LE":
            return first_failure(first, step, "LT", limit + 1)
        case "LT" if distance <= 0:
            return 0
        case "LT":
            return -(-distance // step) if step > 0 else None
        case "EQ":
            return 0 if distance else 1 if step else None
    if not step:
        return None if distance else 0
    trips, rest = divmod(distance, step)
    return trips if trips >= 0 and not rest else None


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
