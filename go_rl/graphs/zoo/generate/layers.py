"""Layers on sequences [batch, time, width]: perceptrons, attention, mixtures of experts, scans."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp

from go_rl.graphs.zoo.generate.draw import Array, Block, Draw, matrix
from go_rl.graphs.zoo.models.building import floats

ACTIVATIONS = (jax.nn.relu, jax.nn.gelu, jax.nn.silu, jnp.tanh)


def normalised(x: Array) -> Array:
    """Return layer normalisation without learned scale."""
    return (x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)


def perceptron(draw: Draw, width: int) -> Block:
    """Return a perceptron of one to three hidden layers, with a residual or without."""
    hidden = draw.one(width // 2, width, 2 * width, 4 * width)
    sizes = [width, *[hidden] * draw.count(1, 3), width]
    weights = [(matrix(a, b), floats(b)) for a, b in pairwise(sizes)]
    activation, residual = draw.one(*ACTIVATIONS), draw.chance(0.5)

    def apply(weights: Any, x: Array) -> Array:
        y = x
        for kernel, bias in weights:
            y = activation(y @ kernel + bias)
        return x + y if residual else y

    return Block(weights, apply)


def gated_perceptron(draw: Draw, width: int) -> Block:
    """Return a gated linear unit as large language models have it."""
    hidden = draw.one(2, 3, 4) * width
    weights = (matrix(width, hidden), matrix(width, hidden), matrix(hidden, width))

    def apply(weights: Any, x: Array) -> Array:
        gate, up, down = weights
        y = normalised(x)
        return x + (jax.nn.silu(y @ gate) * (y @ up)) @ down

    return Block(weights, apply)


def experts(draw: Draw, width: int) -> Block:
    """Return a dense mixture of two to sixteen experts of unlike depth."""
    depths = [draw.count(1, 3) for _ in range(draw.size(2, 16))]
    hidden = draw.one(width, 2 * width)
    pairs = [[(matrix(width, hidden), matrix(hidden, width))] * depth for depth in depths]
    weights = (matrix(width, len(depths)), pairs)

    def apply(weights: Any, x: Array) -> Array:
        router, parts = weights
        gates = jax.nn.softmax(x @ router)
        total = x
        for i, layers in enumerate(parts):
            y = x
            for up, down in layers:
                y = jax.nn.gelu(y @ up) @ down
            total = total + gates[..., i : i + 1] * y
        return total

    return Block(weights, apply)


def attention(draw: Draw, width: int) -> Block:
    """Return a Transformer layer; its heads are one product, or one each."""
    heads, hidden = draw.one(2, 4, 8), draw.one(2, 4) * width
    separate, causal = draw.chance(0.3), draw.chance(0.4)
    weights = (*(matrix(width, width) for _ in range(4)), matrix(width, hidden),
               matrix(hidden, width))  # fmt: skip

    def attend(q: Array, k: Array, v: Array) -> Array:
        scores = q @ k.swapaxes(-1, -2) / q.shape[-1] ** 0.5
        if causal:
            seen = jnp.tril(jnp.ones(scores.shape[-2:], bool))
            scores = jnp.where(seen, scores, -1e9)
        return jax.nn.softmax(scores) @ v

    def apply(weights: Any, x: Array) -> Array:
        query, key, value, out, up, down = weights
        y = normalised(x)
        q, k, v = (
            jnp.moveaxis((y @ w).reshape(*x.shape[:2], heads, -1), 2, 1)
            for w in (query, key, value)
        )
        if separate:
            each = [attend(q[:, h], k[:, h], v[:, h]) for h in range(heads)]
            mixed = jnp.stack(each, axis=1)
        else:
            mixed = attend(q, k, v)
        x = x + jnp.moveaxis(mixed, 1, 2).reshape(x.shape) @ out
        return x + jax.nn.gelu(normalised(x) @ up) @ down

    return Block(weights, apply)


def mixer(draw: Draw, width: int, length: int) -> Block:
    """Return a mixing of positions, then of channels, by perceptrons (MLP-Mixer)."""
    tokens, channels = draw.one(1, 2) * length, draw.one(2, 4) * width
    weights = (matrix(length, tokens), matrix(tokens, length), matrix(width, channels),
               matrix(channels, width))  # fmt: skip

    def apply(weights: Any, x: Array) -> Array:
        first, second, third, fourth = weights
        y = normalised(x).swapaxes(1, 2)
        x = x + (jax.nn.gelu(y @ first) @ second).swapaxes(1, 2)
        return x + jax.nn.gelu(normalised(x) @ third) @ fourth

    return Block(weights, apply)


def state_space(draw: Draw, width: int, length: int) -> Block:
    """Return a gated linear recurrence, step by step or in chunks with a carried state (S4, Mamba,
    RetNet)."""
    state, chunked = draw.one(4, 8, 16), draw.chance(0.5)
    steps = min(length, draw.one(8, 16, 32))
    weights = (matrix(width, 2 * width), matrix(width, state), matrix(width, state),
               floats(width, state), matrix(width, width))  # fmt: skip

    def apply(weights: Any, x: Array) -> Array:
        inside, to_state, from_state, decay, out = weights
        u, gate = jnp.split(normalised(x) @ inside, 2, axis=-1)
        keep, parts = jnp.exp(-jax.nn.softplus(decay)), []
        carried = jnp.zeros((x.shape[0], width, state))
        for part in jnp.split(u[:, : length // steps * steps], steps, axis=1):
            entered, left = part @ to_state, part @ from_state
            carried = carried * keep + jnp.einsum("btw,bts->bws", part, entered)
            y = jnp.einsum("bws,bts->btw", carried, left)
            if chunked:
                y = y + jax.nn.softmax(left @ entered.swapaxes(1, 2)) @ part
            parts.append(y)
        mixed = jnp.concatenate(parts, axis=1)
        gate = gate[:, : mixed.shape[1]]
        return x[:, : mixed.shape[1]] + (mixed * jax.nn.silu(gate)) @ out

    return Block(weights, apply)
