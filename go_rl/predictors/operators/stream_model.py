"""Latency of element-wise operators, softmax and layer norm on a GPU: a start, then bandwidth.

seconds = max(floor, start + bytes / (share · bandwidth)), the maximum smooth, the share by the
length of a row, the bandwidth that of memory or, where all fits, of the cache (`cache_residency`).
The floor is what the host needs for a launch; all GPUs share the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from go_rl.predictors.operators.cache_residency import FITS, cache_bandwidth, missed
from go_rl.programs.operators.operator_rows import STREAMS

KNOTS = np.arange(0.0, 15.0, 2.0)
"""Binary logarithms of the lengths of a row at which the share is known; linear between them."""
LARGEST_SHARE = 0.92
"""Of the bandwidth, that any operator reaches."""
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
    """Return the shared parameters from which learning starts: [streams], lengths [streams, knots],
    how the share grows with the bandwidth, and what fits the cache."""
    count = len(STREAMS)
    each = {"start": -11.4, "share": 1.4}
    params = {name: np.full(count, start, np.float32) for name, start in each.items()}
    lengths = np.zeros((count, len(KNOTS)), np.float32)
    one = {"wider": np.zeros((), np.float32), "fits": np.asarray(FITS, np.float32)}
    return params | {"length": lengths} | one


def log_body(p: Mapping[str, Any], x: StreamInputs, xp: Any = np) -> Any:
    """Return [R] natural logarithms of expected seconds on a host that needs no time
    (`launch_floor.with_floor`)."""
    place = xp.clip(xp.log2(xp.maximum(x.length, 1.0)) / 2.0, 0.0, len(KNOTS) - 1.001)
    below = xp.floor(place)
    low, part = below.astype(np.int32), place - below
    at = p["length"]
    slower = (1 - part) * at[x.op, low] + part * at[x.op, low + 1]
    wide = xp.clip(xp.log(x.bandwidth / MIDDLE_BANDWIDTH), -WIDEST, WIDEST)
    share = 0.5 * (1 + xp.tanh(0.5 * (p["share"][x.op] + p["wider"] * wide)))
    per_peak = xp.maximum(xp.exp(slower) / share, 1 / LARGEST_SHARE)
    memory = missed(x.bytes, x.l2, p["fits"], xp)
    cache = xp.maximum(cache_bandwidth(x.multiprocessors, x.clock), x.bandwidth)
    per_byte = memory / x.bandwidth + (1 - memory) / cache
    return xp.log(xp.exp(p["start"][x.op]) + x.bytes * per_peak * per_byte)
