"""Latency of element-wise operators, softmax and layer norm on a GPU: a start, then bandwidth.

seconds = max(floor, start + bytes / (share · bandwidth)), the maximum smooth, the share by the
length of a row, the bandwidth that of memory or, where all fits, of the cache (`cache_residency`).
The floor is what the host needs for a launch, the start a part of it: half on all hosts that were
measured. All GPUs share the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from go_rl.costs.operators.cache_residency import cache_bandwidth, missed
from go_rl.costs.operators.tables.operator_rows import STREAMS

KNOTS = np.array([0.0, 4.0, 6.0, 8.0, 9.0, 10.0, 10.01, 11.0, 12.0, 14.0])
"""Binary logarithms of the lengths of a row at which shares are known; linear between them. PyTorch
has another softmax beyond 1024 elements."""
LARGEST_SHARE = 0.92
"""Largest share of the bandwidth that any operator reaches."""
MIDDLE_BANDWIDTH, WIDEST = 550e9, 1.2
"""Bytes per second, and logarithm of a factor from there beyond which the share stays."""


class StreamInputs(NamedTuple):
    """``R`` streams on ``R`` devices; all [R]."""

    op: Any
    """Index in `STREAMS`."""
    bytes: Any
    length: Any
    """Elements of a row."""
    bandwidth: Any
    """Bytes per second."""
    l2: Any
    """Bytes."""
    multiprocessors: Any
    clock: Any
    """Hertz."""


def initial_params() -> dict[str, np.ndarray]:
    """Return the shared parameters from which learning starts: [streams] starts (logarithms of
    shares of the floor) and shares of the bandwidth; [streams, knots] by how much rows of a length
    slow down (logarithms); how the share grows with the bandwidth."""
    count = len(STREAMS)
    return {
        "start": np.full(count, -0.6, np.float32),
        "share": np.full(count, 1.4, np.float32),
        "length": np.zeros((count, len(KNOTS)), np.float32),
        "wider": np.zeros((), np.float32),
    }


def log_body(p: Mapping[str, Any], x: StreamInputs, xp: Any = np, *, is_cached: bool = True) -> Any:
    """Return [R] natural logarithms of expected seconds on a host that needs no time but the start
    (`launch_floor.with_floor`); ``p`` has besides the shared parameters ``floor`` [R], of the rows'
    hosts. Unless ``is_cached``, everything comes from memory."""
    length = xp.log2(xp.maximum(x.length, 1.0))
    place = xp.interp(length, xp.asarray(KNOTS), xp.arange(len(KNOTS), dtype=length.dtype))
    low = xp.clip(xp.floor(place), 0, len(KNOTS) - 2).astype(np.int32)
    part = place - low
    at = p["length"]
    slower = (1 - part) * at[x.op, low] + part * at[x.op, low + 1]
    wide = xp.clip(xp.log(x.bandwidth / MIDDLE_BANDWIDTH), -WIDEST, WIDEST)
    share = 0.5 * (1 + xp.tanh(0.5 * (p["share"][x.op] + p["wider"] * wide)))
    per_peak = xp.maximum(xp.exp(slower) / share, 1 / LARGEST_SHARE)
    missing = missed(x.bytes, x.l2, xp) if is_cached else 1.0
    cache = xp.maximum(cache_bandwidth(x.multiprocessors, x.clock), x.bandwidth)
    per_byte = per_peak * (missing / x.bandwidth + (1 - missing) / cache)
    return xp.log(xp.exp(p["start"][x.op] + p["floor"]) + x.bytes * per_byte)
