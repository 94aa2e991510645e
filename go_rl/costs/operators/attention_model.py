"""Latency of fused attention on a GPU: tiles of queries in waves, each going over its keys.

A library gives each block a tile of queries of one of `TILES` and lets it go over the keys; where
there are few blocks, several share the keys of a tile and their results are joined (Dao and others,
2023: FlashDecoding). Of each kind of tile the model states the seconds: products, exponentials,
latency of the loop, traffic of caches and of memory, waves. The quickest kind is taken, blurred.
Where query heads share heads of keys and values, some kernels copy those for each first. Written
over an array module, as `go_rl.costs.operators.product_model`. All GPUs share the parameters but
floor and start.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from go_rl.core.operators import FLOAT_BYTES
from go_rl.costs.operators.cache_residency import cache_bandwidth, missed

TILES = np.array([16.0, 64.0, 128.0], np.float32)
"""Queries of one block."""
DEPTH_STEP = 32.0
"""Elements of a head to multiples of which products are padded, as far as was learned."""
LIMITS = 4
"""Exponent of the smooth maximum of all that takes time."""
BLUR = 0.1
"""Logarithm by which kinds of tiles may be slower than the quickest and still be taken."""


class AttentionInputs(NamedTuple):
    """``R`` operators on ``R`` devices; all [R]."""

    batch: Any
    heads: Any
    groups: Any
    queries: Any
    keys: Any
    depth: Any
    causal: Any
    flops: Any
    """Peak FLOP per second."""
    bandwidth: Any
    """Memory bandwidth, bytes per second, over the width of an element relative to float32."""
    l2: Any
    """Size of the L2 cache, bytes, likewise."""
    multiprocessors: Any
    clock: Any
    """Clock, hertz."""


def initial_params() -> dict[str, np.ndarray]:
    """Return the parameters from which learning starts.

    [tiles] each: shares of the peak (logits), logarithms of the cycles of a score and of a step of
    the loop and of the steps before the first, and liking. [2] each, of kernels where every head
    has its own keys and where heads share them: latency, how much of what causal attention masks is
    computed, by how much products are slower. Scalars; ``copied`` and ``scores`` are logarithms of
    how often copies of keys, and scores, travel where heads share keys.
    """
    each = {"share": 0.5, "score": 0.0, "loop": 2.0, "prologue": 3.0, "liked": 0.0}
    one = {
        "whole_waves": 0.0,
        "memory": 1.5,
        "cached": 0.0,
        "splits": 0.5,
        "split_from": 5.0,
        "split_launch": -12.5,
        "padding": 0.0,
        "copied": -2.0,
        "scores": -3.0,
    }
    of_kernel = {"latency": -12.5, "unmasked": -1.0, "slower": 0.0}
    params = {name: np.full(len(TILES), start, np.float32) for name, start in each.items()}
    params |= {name: np.full(2, start, np.float32) for name, start in of_kernel.items()}
    return params | {name: np.asarray(start, np.float32) for name, start in one.items()}


def log_gpu_seconds(p: Mapping[str, Any], x: AttentionInputs, xp: Any = np) -> Any:
    """Return [R] natural logarithms of seconds for which the GPU works."""
    per_tile = xp.log(_tile_seconds(p, x, xp))
    liking = (p["liked"] - per_tile) / BLUR
    liking = liking - liking.max(1, keepdims=True)
    chosen = xp.exp(liking) / xp.exp(liking).sum(1, keepdims=True)
    return xp.logaddexp((chosen * per_tile).sum(1), p["latency"][_kernel(x)])


def _kernel(x: AttentionInputs) -> Any:
    """[R] 1 where heads share keys, else 0."""
    return (x.groups > 1).astype(np.int32)


def _tile_seconds(p: Mapping[str, Any], x: AttentionInputs, xp: Any) -> Any:
    """[R, tiles] seconds of each kind of tile."""
    batch, heads, groups, queries, keys, depth, causal, flops, bandwidth, l2, processors, clock = (
        v[:, None] for v in x
    )
    tiles = batch * heads * xp.ceil(queries / TILES)
    seen = xp.where(causal > 0, (keys + xp.minimum(TILES, keys)) / 2, keys)
    kernel = _kernel(x)[:, None]
    masked = xp.where(causal > 0, keys - seen, 0.0)
    seen = seen + _sigmoid(p["unmasked"], xp)[kernel] * masked
    parts = xp.maximum(
        1.0, xp.minimum(xp.exp(p["splits"]) * processors / tiles,
                        seen / xp.exp(xp.clip(p["split_from"], 3, 9))),
    )  # fmt: skip
    load = tiles * parts / processors
    busy, whole = xp.maximum(load, 1.0), _sigmoid(p["whole_waves"], xp)
    waves = xp.where(parts > 1.0, busy, whole * xp.ceil(load) + (1 - whole) * busy)
    steps = seen / parts + xp.exp(xp.clip(p["prologue"], -3, 7))
    padded = xp.ceil(depth / DEPTH_STEP) * DEPTH_STEP
    wide = depth + _sigmoid(p["padding"], xp) * (padded - depth)
    work = waves * TILES * steps
    arithmetic = 4 * work * wide * processors / (flops * _sigmoid(p["share"], xp))
    arithmetic = xp.exp(p["slower"])[kernel] * arithmetic + work * xp.exp(p["score"]) / (64 * clock)
    loop = steps * xp.exp(xp.clip(p["loop"], -6, 8)) / clock
    kept = FLOAT_BYTES * batch * heads * depth
    once = 2 * kept * (queries + keys / groups)
    copied = kernel * xp.exp(p["copied"]) * kept * keys
    copied = copied + kernel * xp.exp(p["scores"]) * FLOAT_BYTES * batch * heads * queries * keys
    memory = (once * missed(once, l2, xp) + copied) / (bandwidth * _sigmoid(p["memory"], xp))
    traffic = 2 * FLOAT_BYTES * tiles * seen * depth
    cached = traffic * xp.exp(p["cached"]) / (
        cache_bandwidth(processors, clock) * bandwidth / x.bandwidth[:, None]
    )  # fmt: skip
    limits = (arithmetic, loop, memory, cached)
    scale = xp.maximum(arithmetic, xp.maximum(memory, loop))
    seconds = scale * sum((each / scale) ** LIMITS for each in limits) ** (1 / LIMITS)
    return seconds + xp.clip(parts - 1, 0.0, 1.0) * xp.exp(p["split_launch"])


def _sigmoid(v: Any, xp: Any) -> Any:
    return 0.5 * (1 + xp.tanh(0.5 * v))
