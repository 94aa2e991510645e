"""Counting (output, tap) pairs of a convolution in closed form, for windows of any size."""

from __future__ import annotations


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
