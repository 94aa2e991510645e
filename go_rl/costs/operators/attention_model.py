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

from go_rl.costs.operator_sizes import FLOAT_BYTES
from go_rl.costs.operators.cache_residency import cache_bandwidth, missed
from go_rl.costs.operators.product_model import sigmoid

TILES = np.array([16.0, 64.0, 128.0], np.float32)
"""Queries of one block."""
DEPTH_STEP = 32.0
"""Elements of a head to multiples of which products are padded, as far as was learned."""
LIMITS = 4
"""Exponent of the smooth maximum of all that takes time."""
SCORES_PER_CYCLE = 64.0
"""Exponentials of a multiprocessor in a cycle, from which learning starts."""
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
    """[R, tiles] seconds of each kind of tile: the smooth maximum of what limits it, and the launch
    that joins parts."""
    x = AttentionInputs(*(each[:, None] for each in x))
    tiles = x.batch * x.heads * xp.ceil(x.queries / TILES)
    seen = _seen(p, x, xp)
    parts, waves = _waves(p, x, tiles, seen, xp)
    steps = seen / parts + xp.exp(xp.clip(p["prologue"], -3, 7))
    limits = (
        _arithmetic(p, x, waves * TILES * steps, xp),
        steps * xp.exp(xp.clip(p["loop"], -6, 8)) / x.clock,
        _memory(p, x, xp),
        _traffic(p, x, tiles * seen, xp),
    )
    scale = xp.maximum(limits[0], xp.maximum(limits[1], limits[2]))
    seconds = scale * sum((each / scale) ** LIMITS for each in limits) ** (1 / LIMITS)
    return seconds + xp.clip(parts - 1, 0.0, 1.0) * xp.exp(p["split_launch"])


def _seen(p: Mapping[str, Any], x: AttentionInputs, xp: Any) -> Any:
    """[R, tiles] keys over which a tile goes: of causal attention those up to its own, and some of
    the masked ones."""
    seen = xp.where(x.causal > 0, (x.keys + xp.minimum(TILES, x.keys)) / 2, x.keys)
    masked = xp.where(x.causal > 0, x.keys - seen, 0.0)
    return seen + sigmoid(p["unmasked"], xp)[_kernel(x)] * masked


def _waves(
    p: Mapping[str, Any], x: AttentionInputs, tiles: Any, seen: Any, xp: Any
) -> tuple[Any, Any]:
    """[R, tiles] blocks that share the keys of a tile, and waves of all blocks."""
    parts = xp.maximum(
        1.0, xp.minimum(xp.exp(p["splits"]) * x.multiprocessors / tiles,
                        seen / xp.exp(xp.clip(p["split_from"], 3, 9))),
    )  # fmt: skip
    load = tiles * parts / x.multiprocessors
    busy, whole = xp.maximum(load, 1.0), sigmoid(p["whole_waves"], xp)
    return parts, xp.where(parts > 1.0, busy, whole * xp.ceil(load) + (1 - whole) * busy)


def _arithmetic(p: Mapping[str, Any], x: AttentionInputs, scores: Any, xp: Any) -> Any:
    """[R, tiles] seconds of products and exponentials; ``scores``: of a multiprocessor."""
    padded = xp.ceil(x.depth / DEPTH_STEP) * DEPTH_STEP
    wide = x.depth + sigmoid(p["padding"], xp) * (padded - x.depth)
    products = 4 * scores * wide * x.multiprocessors / (x.flops * sigmoid(p["share"], xp))
    exponentials = scores * xp.exp(p["score"]) / (SCORES_PER_CYCLE * x.clock)
    return xp.exp(p["slower"])[_kernel(x)] * products + exponentials


def _memory(p: Mapping[str, Any], x: AttentionInputs, xp: Any) -> Any:
    """[R, 1] seconds of what comes from memory: queries, keys, values and results once, and what a
    kernel copies where heads share keys."""
    kept = FLOAT_BYTES * x.batch * x.heads * x.depth
    once = 2 * kept * (x.queries + x.keys / x.groups)
    scores = FLOAT_BYTES * x.batch * x.heads * x.queries * x.keys
    copied = xp.exp(p["copied"]) * kept * x.keys + xp.exp(p["scores"]) * scores
    moved = once * missed(once, x.l2, xp) + _kernel(x) * copied
    return moved / (x.bandwidth * sigmoid(p["memory"], xp))


def _traffic(p: Mapping[str, Any], x: AttentionInputs, seen: Any, xp: Any) -> Any:
    """[R, tiles] seconds of what tiles read from the cache; ``seen``: keys of all tiles."""
    moved = 2 * FLOAT_BYTES * seen * x.depth
    return moved * xp.exp(p["cached"]) / cache_bandwidth(x.multiprocessors, x.clock)
