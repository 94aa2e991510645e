"""Latency of element-wise operators, softmax and layer norm on a GPU: a start, then bandwidth.

seconds = max(floor, start + latency + max(bytes / (share · bandwidth), arithmetic, rows)), the
maxima smooth, the share by the length of a row, the bandwidth that of memory or, where all fits, of
the cache (`cache_residency`). The floor is what the host needs for a launch, the start a part of
it: half on older hosts, less on a current one. The latency is that of a kernel of no bytes, in
cycles, by the length of a row; arithmetic is what elements cost the vector units (a power costs
many, and each element of a window), rows what each costs a multiprocessor. Rows that are no
multiple of 16 bytes are read one by one by ``softmax`` and the like, which costs bytes and rows a
factor. All GPUs share the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from go_rl.costs.operators.cache_residency import cache_bandwidth, missed
from go_rl.costs.operators.tables import operator_rows
from go_rl.costs.operators.tables.operator_rows import STREAMED

KNOTS = np.array([0.0, 4.0, 6.0, 8.0, 9.0, 10.0, 10.01, 11.0, 12.0, 14.0])
"""Binary logarithms of the lengths of a row at which shares are known; linear between them. PyTorch
has another softmax beyond 1024 elements."""
LARGEST_SHARE = 0.92
"""Largest share of the bandwidth that any operator reaches."""
CYCLES, OF_ROW = 800.0, 4.0
"""Cycles of a kernel that moves nothing, and of a row on a multiprocessor, from which learning
starts."""
FLOP = {"pow": 100.0, "powu": 100.0, "gelu": 40.0, "tanh": 40.0}
"""FLOP of an element from which learning starts; 10 of other operators."""
BY_ROWS = np.array([name in operator_rows.BY_ROWS for name in STREAMED])
"""[streams] whether rows matter: other operators take all elements as one."""
LIMITS = 4
"""Exponent of the smooth maximum of bytes, arithmetic and rows."""
MIDDLE_BANDWIDTH, WIDEST = 550e9, 1.2
"""Bytes per second, and logarithm of a factor from there beyond which the share stays."""


class StreamInputs(NamedTuple):
    """``R`` streams on ``R`` devices; all [R]."""

    op: Any
    """Index in `STREAMED`."""
    bytes: Any
    rows: Any
    length: Any
    """Elements of a row."""
    window: Any
    """Elements of which each element of the result is computed."""
    ragged: Any
    """1 where a row is no multiple of 16 bytes, else 0."""
    bandwidth: Any
    """Memory bandwidth, bytes per second."""
    l2: Any
    """Size of the L2 cache, bytes."""
    multiprocessors: Any
    clock: Any
    """Clock, hertz."""
    vector_flops: Any
    """Peak of the vector units, FLOP per second."""


def initial_params() -> dict[str, np.ndarray]:
    """Return the shared parameters from which learning starts.

    ``share``, ``cached``, ``flop`` [streams]: shares of the bandwidth of memory, what the cache
    gives, FLOP of an element; ``length``, ``ragged``, ``cycles`` [streams, knots]: by how much rows
    of a length slow down, by how much more if they are not aligned, cycles of a kernel that moves
    nothing; ``row`` [streams, 2]: cycles of an aligned row and of others; ``wider``: how the share
    grows with the bandwidth. The first is a logit, the others are logarithms.
    """
    count = len(STREAMED)
    return {
        "share": np.full(count, 1.4, np.float32),
        "cached": np.zeros(count, np.float32),
        "length": np.zeros((count, len(KNOTS)), np.float32),
        "cycles": np.full((count, len(KNOTS)), np.log(CYCLES), np.float32),
        "ragged": np.zeros((count, len(KNOTS)), np.float32),
        "row": np.full((count, 2), np.log(OF_ROW), np.float32),
        "flop": np.log([FLOP.get(name, 10.0) for name in STREAMED]).astype(np.float32),
        "wider": np.zeros((), np.float32),
    }


def log_body(p: Mapping[str, Any], x: StreamInputs, *, is_cached: bool = True) -> Any:
    """Return [R] natural logarithms of expected seconds on a host that needs no time but the start
    (`launch_floor.with_floor`); ``p`` has besides the shared parameters ``floor`` and ``start``
    [R], of the rows' hosts. Unless ``is_cached``, everything comes from memory."""
    return np.log(np.exp(p["start"] + p["floor"]) + gpu_seconds(p, x, is_cached=is_cached))


def gpu_seconds(
    p: Mapping[str, Any], x: StreamInputs, xp: Any = np, *, is_cached: bool = True
) -> Any:
    """Return [R] seconds for which the GPU works."""
    length = xp.log2(xp.maximum(x.length, 1.0))
    place = xp.interp(length, xp.asarray(KNOTS), xp.arange(len(KNOTS), dtype=length.dtype))
    low = xp.clip(xp.floor(place), 0, len(KNOTS) - 2).astype(np.int32)
    part = place - low

    def by_length(at: Any) -> Any:
        return (1 - part) * at[x.op, low] + part * at[x.op, low + 1]

    ragged = xp.where(xp.asarray(BY_ROWS)[x.op], x.ragged, 0)
    slower = by_length(p["length"]) + ragged * by_length(p["ragged"])
    wide = xp.clip(xp.log(x.bandwidth / MIDDLE_BANDWIDTH), -WIDEST, WIDEST)
    share = 0.5 * (1 + xp.tanh(0.5 * (p["share"][x.op] + p["wider"] * wide)))
    per_peak = xp.maximum(xp.exp(slower) / share, 1 / LARGEST_SHARE)
    missing = missed(x.bytes, x.l2, xp) if is_cached else 1.0
    cache = xp.maximum(cache_bandwidth(x.multiprocessors, x.clock), x.bandwidth)
    cache = cache * xp.exp(p["cached"][x.op])
    per_byte = per_peak * (missing / x.bandwidth + (1 - missing) / cache)
    arithmetic = x.rows * x.length * x.window * xp.exp(p["flop"][x.op]) / x.vector_flops
    by_row = x.rows * xp.exp(p["row"][x.op, ragged]) / (x.multiprocessors * x.clock)
    by_row = xp.where(xp.asarray(BY_ROWS)[x.op], by_row, 0.0)
    moved = x.bytes * per_byte
    scale = xp.maximum(moved, xp.maximum(arithmetic, by_row))
    limits = [(each / scale) ** LIMITS for each in (moved, arithmetic, by_row)]
    return xp.exp(by_length(p["cycles"])) / x.clock + scale * sum(limits) ** (1 / LIMITS)
