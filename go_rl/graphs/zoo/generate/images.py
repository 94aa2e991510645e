"""Convolutional networks [batch, height, width, channels]: plain, residual, dense, branching,
U-shaped, random, with attention (diffusion)."""

from __future__ import annotations

import operator
from functools import reduce
from typing import Any

import jax
import jax.numpy as jnp

from go_rl.graphs.zoo.generate.draw import (
    Array,
    Block,
    Draw,
    RandomNetwork,
    chained,
    matrix,
    scoped,
)
from go_rl.graphs.zoo.models.building import floats

CLASSES = 1000


def convolved(x: Array, kernel: Array, stride: int = 1) -> Array:
    """Return a convolution of the same size, or smaller by the stride; a depthwise one where the
    kernel has one input channel."""
    groups = x.shape[-1] // kernel.shape[2]
    return jax.lax.conv_general_dilated(
        x, kernel, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"),
        feature_group_count=groups,
    )  # fmt: skip


def convolution(draw: Draw, inside: int, outside: int, size: int, stride: int = 1) -> Block:
    """Return convolution, batch normalisation or none, and a rectifier."""
    normal = draw.chance(0.6)
    weights = (floats(size, size, inside, outside), floats(outside))

    def apply(weights: Any, x: Array) -> Array:
        y = convolved(x, weights[0], stride)
        if normal:
            y = (y - y.mean((0, 1, 2))) * jax.lax.rsqrt(y.var((0, 1, 2)) + 1e-5)
        return jax.nn.relu(y * weights[1])

    return Block(weights, apply)


def _residual(draw: Draw, channels: int) -> Block:
    """Two or three convolutions, perhaps with a bottleneck or a depthwise middle."""
    kind = draw.one("basic", "bottleneck", "inverted")
    inner = {"basic": channels, "bottleneck": max(channels // 4, 8), "inverted": 4 * channels}[kind]
    if kind == "basic":
        inside = chained([convolution(draw, channels, channels, draw.one(1, 3, 5)),
                          convolution(draw, channels, channels, 3)])  # fmt: skip
    else:
        middle = convolution(draw, 1 if kind == "inverted" else inner, inner, 3)
        inside = chained([convolution(draw, channels, inner, 1), middle,
                          convolution(draw, inner, channels, 1)])  # fmt: skip
    return Block(inside.weights, lambda weights, x: jax.nn.relu(x + inside.apply(weights, x)))


def _branching(draw: Draw, channels: int) -> Block:
    """Two to six branches of one to four convolutions, added or joined (Inception, NASNet)."""
    branches = [
        scoped(f"branch_{i}", chained([convolution(draw, channels, channels, draw.one(1, 1, 3, 5))
                                       for _ in range(draw.count(1, 4))]))
        for i in range(draw.count(2, 6))
    ]  # fmt: skip
    joined = draw.chance(0.5)
    weights = ([one.weights for one in branches],
               floats(1, 1, len(branches) * channels, channels) if joined else ())  # fmt: skip

    def apply(weights: Any, x: Array) -> Array:
        ys = [one.apply(w, x) for one, w in zip(branches, weights[0], strict=True)]
        if joined:
            return convolved(jnp.concatenate(ys, -1), weights[1])
        return reduce(operator.add, ys)

    return Block(weights, apply)


def _dense(draw: Draw, channels: int) -> Block:
    """Convolutions that each see all before them (DenseNet)."""
    growth, many = draw.one(16, 32), draw.count(2, 10)
    inside = [
        scoped(f"dense_{i}", convolution(draw, channels + i * growth, growth, 3))
        for i in range(many)
    ]
    weights = ([one.weights for one in inside],
               floats(1, 1, channels + many * growth, channels))  # fmt: skip

    def apply(weights: Any, x: Array) -> Array:
        for one, w in zip(inside, weights[0], strict=True):
            x = jnp.concatenate([x, one.apply(w, x)], -1)
        return convolved(x, weights[1])

    return Block(weights, apply)


def _random(draw: Draw, channels: int) -> Block:
    """Convolutions wired at random (RandWire)."""
    many = draw.count(4, 24)
    inside = [
        scoped(f"wired_{i}", convolution(draw, channels, channels, draw.one(1, 3)))
        for i in range(many)
    ]
    sources = [sorted(draw.some(range(i + 1), 1, 3)) for i in range(many)]

    def apply(weights: Any, x: Array) -> Array:
        found = [x]
        for one, w, read in zip(inside, weights, sources, strict=True):
            found.append(one.apply(w, sum((found[j] for j in read[1:]), found[read[0]])))
        return found[-1] + found[-2]

    return Block([one.weights for one in inside], apply)


STAGES = {"residual": _residual, "branching": _branching, "dense": _dense, "random": _random}


def classifier(draw: Draw, batch: int) -> RandomNetwork:
    """Return stages of blocks at falling resolution, and a classifier."""
    kind = draw.one(*STAGES, "plain", "mixed")
    channels, side = draw.one(16, 32, 64, 128), draw.one(16, 32, 56)
    blocks: list[Block] = []
    most = {"random": 2, "dense": 3, "branching": 5}.get(kind, 8)
    for stage in range(draw.count(1, 4)):
        if stage and channels < 512:
            blocks.append(convolution(draw, channels, 2 * channels, 3, 2))
            channels *= 2
        for _ in range(draw.count(1, most)):
            one = draw.one(*STAGES) if kind == "mixed" else kind
            block = (
                convolution(draw, channels, channels, 3)
                if one == "plain" else STAGES[one](draw, channels)
            )  # fmt: skip
            blocks.append(block)
    first = convolution(draw, 3, _inside(blocks), draw.one(3, 7))
    body = chained([first, *blocks])

    def loss(weights: Any, x: Array) -> Array:
        y = body.apply(weights[0], x).mean((1, 2)) @ weights[1]
        return jnp.mean(jax.nn.log_softmax(y))

    return RandomNetwork(
        (body.weights, matrix(channels, CLASSES)), loss, (floats(batch, side, side, 3),)
    )


def _inside(blocks: list[Block]) -> int:
    """Channels that the first block reads."""
    return jax.tree.leaves(blocks[0].weights)[0].shape[2]


def _attended(draw: Draw, channels: int) -> Block:
    """Positions of an image that attend to each other."""
    weights = tuple(matrix(channels, channels) for _ in range(4))

    def apply(weights: Any, x: Array) -> Array:
        flat = x.reshape(x.shape[0], -1, channels)
        q, k, v = (flat @ w for w in weights[:3])
        y = jax.nn.softmax(q @ k.swapaxes(1, 2) / channels**0.5) @ v @ weights[3]
        return x + y.reshape(x.shape)

    return Block(weights, apply)


def u_shaped(draw: Draw, batch: int) -> RandomNetwork:
    """Return a U-Net; with a time embedding and attention it is a diffusion model's."""
    channels, side, levels = draw.one(16, 32, 64), draw.one(16, 32, 64), draw.count(2, 4)
    diffuses, widths = draw.chance(0.5), [0] * levels
    widths = [channels * 2**level for level in range(levels)]
    down = [
        chained([_residual(draw, w) for _ in range(draw.count(1, 3))]
                + [_attended(draw, w)] * (diffuses and side >> level <= 16))
        for level, w in enumerate(widths)
    ]  # fmt: skip
    down = [scoped(f"down_{level}", one) for level, one in enumerate(down)]
    up = [
        scoped(f"up_{level}", chained([_residual(draw, w) for _ in range(draw.count(1, 3))]))
        for level, w in enumerate(widths)
    ]
    shrink = [
        scoped(f"shrink_{i}", convolution(draw, a, 2 * a, 3, 2)) for i, a in enumerate(widths)
    ]
    bottom = scoped("bottom", _residual(draw, 2 * widths[-1]))
    weights = {
        "in": floats(3, 3, 3, channels), "out": floats(3, 3, channels, 3),
        "down": [one.weights for one in down], "up": [one.weights for one in up],
        "shrink": [one.weights for one in shrink], "bottom": bottom.weights,
        "join": [floats(3, 3, 3 * a, a) for a in widths],
        "time": [matrix(64, a) for a in widths] if diffuses else [],
    }  # fmt: skip

    def loss(weights: Any, x: Array, time: Array) -> Array:
        x, kept = convolved(x, weights["in"]), []
        for i, one in enumerate(down):
            if diffuses:
                x = x + (jax.nn.silu(time) @ weights["time"][i])[:, None, None]
            x = one.apply(weights["down"][i], x)
            kept.append(x)
            x = shrink[i].apply(weights["shrink"][i], x)
        x = bottom.apply(weights["bottom"], x)
        for i in range(levels - 1, -1, -1):
            x = jnp.repeat(jnp.repeat(x, 2, 1), 2, 2)
            with jax.named_scope(f"join_{i}"):
                x = convolved(jnp.concatenate([x, kept[i]], -1), weights["join"][i])
            x = up[i].apply(weights["up"][i], x)
        return jnp.mean(jnp.square(convolved(x, weights["out"])))

    return RandomNetwork(weights, loss, (floats(batch, side, side, 3), floats(batch, 64)))
