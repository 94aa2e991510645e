"""Latency of matrix products on a GPU: tiles in waves over the multiprocessors, and what they read.

A library cuts the result into tiles of one of `TILES`. Of each kind of tile the model states the
seconds (arithmetic, latency of the summing loop, traffic of caches and memory, waves), and which
kind the library would choose: the quickest, of those the one that pads least, blurred. Written over
an array module, so that JAX learns its parameters and NumPy predicts. All GPUs share the
parameters, except those that `pooled_params.initial_params` names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from go_rl.costs.operator_sizes import FLOAT_BYTES
from go_rl.costs.operators.cache_residency import missed

TILES = ((32, 32), (64, 32), (32, 64), (64, 64), (128, 32), (32, 128), (128, 64), (64, 128),
         (128, 128))  # fmt: skip
"""Columns and rows of the result that one block computes."""
WIDTH, HEIGHT = (np.array(each, np.float32) for each in zip(*TILES, strict=True))
LARGEST_TILE = 128.0 * 128.0
WINOGRAD = 2.25
"""Multiplications of a convolution of kernel 3 and stride 1 over those that Winograd's needs."""
FEW_ROWS = 16
"""Rows of a linear layer up to which a library has another kernel: Hopper's takes 2.4 µs for 16
rows and 11 for 17 (float32, few columns, shallow)."""
CEILING_SHARPNESS = 8
"""Exponent of the smooth maximum of what arithmetic takes and what its power allows."""
Params = Mapping[str, Any]


CONVERSION = {"conversion": 0.5, "conversion_launch": -12.5}
"""Further parameters of convolutions, from which learning starts: the logit of the share of the
bandwidth at which layouts change, and the logarithm of the seconds of its launches."""


class ProductInputs(NamedTuple):
    """``R`` products on ``R`` devices; all [R]."""

    batch: Any
    rows: Any
    columns: Any
    depth: Any
    flops: Any
    """Peak FLOP per second."""
    bandwidth: Any
    """Memory bandwidth, bytes per second."""
    l2: Any
    """Size of the L2 cache, bytes."""
    multiprocessors: Any
    clock: Any
    """Clock, hertz."""
    power_ratio: Any
    """Power ratio, see `go_rl.costs.operators.architectures.power_ratio`."""
    peak_share: Any
    """Largest share of the peak that any tile could reach."""
    ragged: Any
    """0 to 2: how badly rows are aligned for tensor cores."""
    weights: Any
    """Elements that come from memory even where all fits in the cache."""
    converted: Any
    """Elements that are read and written once more, in another layout."""


def initial_params() -> dict[str, np.ndarray]:
    """Return the shared parameters from which learning starts: [tiles], scalars, ``throttle`` [4]
    (of power, of small tiles, what is long, of short kernels), and ``ragged`` [3], logarithms by
    which arithmetic on rows of such alignment is slower; the first does not count. ``few``:
    logarithm by which the loop of few rows is slower, which never joins parts of sums; ``idle``:
    logarithm of the seconds that other products take longer where most multiprocessors idle."""
    each = {"share": 1.5, "prologue": 3.0, "loop": 1.5, "resident": 0.7}
    one = {
        "whole_waves": 1.0, "memory": 1.0, "l2_rate": 0.0, "l2_keeps": -0.7,
        "sharpness": 0.5, "choice": -1.5, "padding": 1.0, "splits": 0.5, "split_from": 5.5,
        "split_launch": -12.0, "few": 0.0, "idle": -13.8,
    }  # fmt: skip
    params = {name: np.full(len(TILES), start, np.float32) for name, start in each.items()}
    params["ragged"] = np.array([0.0, 1.0, 1.5], np.float32)
    params["throttle"] = np.array([0.0, 0.0, 0.0, 0.5], np.float32)
    return params | {name: np.asarray(start, np.float32) for name, start in one.items()}


def log_gpu_seconds(p: Params, x: ProductInputs, xp: Any = np) -> Any:
    """Return [R] natural logarithms of seconds for which the GPU works."""
    per_tile, padding = tile_log_seconds(p, x, xp)
    chosen = xp.exp(log_choice(p, per_tile, padding, xp))
    return with_conversion(p, x, (chosen * per_tile).sum(1), xp)


def with_conversion(p: Params, x: ProductInputs, log_seconds: Any, xp: Any) -> Any:
    """Return logarithms of seconds with those for which images are brought into the layout of
    tensor cores and back."""
    if "conversion" not in p:
        return log_seconds
    moved = 2 * FLOAT_BYTES * x.converted / (x.bandwidth * sigmoid(p["conversion"], xp))
    moved = moved * missed(FLOAT_BYTES * xp.maximum(x.converted, 1.0), x.l2, xp)
    extra = xp.where(x.converted > 0, moved + xp.exp(p["conversion_launch"]), 1e-12)
    return xp.logaddexp(log_seconds, xp.log(extra))


def tile_log_seconds(p: Params, x: ProductInputs, xp: Any) -> tuple[Any, Any]:
    """Return [R, tiles] logarithms of seconds of each kind of tile, and of result elements that are
    computed over those that are kept."""
    batch, rows, columns, depth, flops, bandwidth, l2, processors, clock = (
        v[:, None] for v in x[:9]
    )
    across, down = xp.ceil(columns / WIDTH), xp.ceil(rows / HEIGHT)
    tiles = batch * across * down
    parts = xp.maximum(
        1.0, xp.minimum(xp.exp(p["splits"]) * processors / tiles,
                        depth / xp.exp(xp.clip(p["split_from"], 3, 9))),
    )  # fmt: skip
    whole = sigmoid(p["whole_waves"], xp)
    load = tiles * parts / processors
    busy = xp.maximum(load, 1.0)
    waves = xp.where(parts > 1.0, busy, whole * xp.ceil(load) + (1 - whole) * busy)
    steps = depth / parts + xp.exp(xp.clip(p["prologue"], -3, 7))
    rate = flops / processors * x.peak_share[:, None] * sigmoid(p["share"], xp)
    arithmetic = waves * 2 * WIDTH * HEIGHT * steps / rate
    length = 2 * WIDTH * HEIGHT * waves * (depth / parts) * processors / flops
    arithmetic = arithmetic * _throttled(p, length, x.power_ratio[:, None], xp)
    arithmetic = arithmetic * _stride_penalty(p, depth, processors, tiles, l2, xp)
    slower = xp.where(x.ragged > 0, xp.exp(p["ragged"])[x.ragged], 1.0)
    arithmetic = arithmetic * slower[:, None]
    few = (batch == 1) & (rows <= FEW_ROWS)
    loop = steps * xp.exp(xp.clip(p["loop"], -6, 8)) * 4 / clock * xp.ceil(waves / 4)
    loop = loop * xp.where(few, xp.exp(p["few"]), 1.0)
    cached = FLOAT_BYTES * tiles * (WIDTH + HEIGHT) * depth / (
        flops * xp.exp(p["l2_rate"]) * 0.25
    )  # fmt: skip
    moved = _memory_bytes(p, x, across, down, parts, xp)
    memory = moved / (bandwidth * sigmoid(p["memory"], xp))
    power = 1 + xp.exp(xp.clip(p["sharpness"], -1.5, 1.5))
    scale = xp.maximum(arithmetic, memory)
    ratios = [(each / scale) ** power for each in (arithmetic, cached, loop, memory)]
    seconds = scale * sum(ratios) ** (1 / power)
    joined = xp.clip(parts - 1, 0.0, 1.0) * xp.exp(p["split_launch"])
    idle = xp.clip(1 - tiles / processors, 0.0, 1.0) * xp.exp(p["idle"])
    seconds = seconds + xp.where(few, 0.0, joined + idle)
    return xp.log(seconds), xp.log(across * WIDTH * down * HEIGHT / (rows * columns))


def _throttled(p: Params, seconds: Any, power_ratio: Any, xp: Any) -> Any:
    """Slow-down of each kind of tile where its arithmetic would take more power than the board may:
    more of kernels of a millisecond and longer, and of small tiles, which move more for the same
    arithmetic."""
    of_power, of_small, long_from, of_short = (p["throttle"][each] for each in range(4))
    is_long = sigmoid(xp.log(seconds) - np.log(1e-3) - long_from, xp)
    small = 1 + _softplus(of_small - 2, xp) * np.log(LARGEST_TILE / (WIDTH * HEIGHT))
    always = sigmoid(of_short, xp)
    taken = xp.exp(of_power) * sigmoid(p["share"], xp) * power_ratio * small
    taken = taken * (always + (1 - always) * is_long)
    return (1 + taken**CEILING_SHARPNESS) ** (1 / CEILING_SHARPNESS)


def _stride_penalty(p: Params, depth: Any, processors: Any, tiles: Any, l2: Any, xp: Any) -> Any:
    """Slow-down of rows far apart in memory, by what the blocks at work touch over the cache: that
    of Pascal's GPUs is severe, later ones hardly have it."""
    resident = xp.minimum(processors * xp.exp(p["resident"]), tiles)
    touched = FLOAT_BYTES * depth * xp.sqrt(resident) * 64 / l2
    far = xp.log(touched) - p["stride_from"][:, None]
    return xp.exp(_softplus(p["stride"], xp)[:, None] * _softplus(far, xp))


def _memory_bytes(p: Params, x: ProductInputs, across: Any, down: Any, parts: Any, xp: Any) -> Any:
    """Bytes from memory: operands once if they stay in the cache, else once a wave for the rows and
    columns that the wave shares; results once, and again for each part of a split sum; hardly any
    if all was in the cache before."""
    batch, rows, columns, depth = (each[:, None] for each in x[:4])
    tiles = batch * across * down
    wave = xp.minimum(x.multiprocessors[:, None] * xp.exp(p["resident"]), tiles)
    wide, tall = xp.minimum(wave, across), xp.clip(wave / across, 1.0, down)
    several = xp.maximum(wave / (across * down), 1.0)
    once = FLOAT_BYTES * batch * depth * (rows + columns)
    shared = (wide * WIDTH + tall * HEIGHT) * several * depth * FLOAT_BYTES
    again = xp.maximum(xp.maximum(tiles / wave, 1.0) * shared, once)
    room = xp.log(x.l2[:, None] / (FLOAT_BYTES * depth * (rows + columns)))
    stays = sigmoid(2 * (room + p["l2_keeps"]), xp)
    result = FLOAT_BYTES * batch * rows * columns
    moved = stays * once + (1 - stays) * again + result * (2 * parts - 1)
    from_memory = missed(once + result, x.l2[:, None], xp)
    return moved * from_memory + (1 - from_memory) * FLOAT_BYTES * x.weights[:, None]


def log_choice(p: Params, per_tile: Any, padding: Any, xp: Any) -> Any:
    """Return [R, tiles] logarithms of how likely the library takes each kind of tile."""
    blur = xp.exp(xp.clip(p["choice"], -4, 1))
    liking = p["liked"] - per_tile / blur - _softplus(p["padding"], xp) * padding
    liking = liking - liking.max(1, keepdims=True)
    return liking - xp.log(xp.exp(liking).sum(1, keepdims=True))


def with_launch(p: Params, seconds: Any, xp: Any) -> Any:
    """Return logarithms of seconds with the launch, a part of what the host needs."""
    return xp.log(xp.exp(p["start"] + p["floor"]) + xp.exp(seconds))


def sigmoid(v: Any, xp: Any) -> Any:
    """Return the logistic function of numbers."""
    return 0.5 * (1 + xp.tanh(0.5 * v))


def _softplus(v: Any, xp: Any) -> Any:
    return xp.logaddexp(v, xp.zeros_like(v))
