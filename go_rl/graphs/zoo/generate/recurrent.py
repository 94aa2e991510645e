"""Unrolled recurrent networks: stacks in one direction or two, with attention, encoder-decoders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from go_rl.graphs.zoo.generate.draw import Array, Block, Draw, RandomNetwork, matrix, scoped
from go_rl.graphs.zoo.models.building import floats

State = tuple[Array, Array]
GATES = {"lstm": 4, "gru": 3, "rnn": 1}
STEPS = 160
"""Most cells of a network, layers times steps; some 12,000 nodes of a training iteration."""


def cell(draw: Draw, width: int) -> Block:
    """Return one step of an LSTM, a GRU or a plain recurrence; a product for each gate, or one."""
    kind, split = draw.one(*GATES), draw.chance(0.4)
    gates = GATES[kind]
    weights: Any = (matrix(width, gates * width), matrix(width, gates * width))
    if split:
        weights = [(matrix(width, width), matrix(width, width)) for _ in range(gates)]

    def apply(weights: Any, state: State, x: Array) -> State:
        h, c = state
        if split:
            z = [x @ a + h @ b for a, b in weights]
        else:
            z = jnp.split(x @ weights[0] + h @ weights[1], gates, axis=-1)
        if kind == "lstm":
            c = jax.nn.sigmoid(z[0]) * c + jax.nn.sigmoid(z[1]) * jnp.tanh(z[2])
            return jax.nn.sigmoid(z[3]) * jnp.tanh(c), c
        if kind == "gru":
            update = jax.nn.sigmoid(z[0])
            return (1 - update) * h + update * jnp.tanh(z[1] * jax.nn.sigmoid(z[2])), c
        return jnp.tanh(z[0]), c

    return Block(weights, apply)


def _run(one: Block, weights: Any, xs: Sequence[Array]) -> list[Array]:
    """Results of a cell on a sequence."""
    state: State = (jnp.zeros_like(xs[0]), jnp.zeros_like(xs[0]))
    found: list[Array] = []
    for x in xs:
        state = one.apply(weights, state, x)
        found.append(state[0])
    return found


def stack(draw: Draw, width: int, layers: int, both_ways: bool) -> Block:
    """Return layers of cells, the second direction merged in by a product."""
    forward = [scoped(f"cell_{i}", cell(draw, width)) for i in range(layers)]
    many = layers if both_ways else 0
    backward = [scoped(f"back_{i}", cell(draw, width)) for i in range(many)]
    merge = [matrix(2 * width, width) for _ in backward]
    residual = draw.chance(0.5)
    weights = ([one.weights for one in forward], [one.weights for one in backward], merge)

    def apply(weights: Any, xs: list[Array]) -> list[Array]:
        there, back, merging = weights
        for layer, one in enumerate(forward):
            new = _run(one, there[layer], xs)
            if both_ways:
                other = _run(backward[layer], back[layer], xs[::-1])[::-1]
                pairs = zip(new, other, strict=True)
                with jax.named_scope(f"merge_{layer}"):
                    new = [jnp.concatenate(pair, -1) @ merging[layer] for pair in pairs]
            xs = [x + y for x, y in zip(xs, new, strict=True)] if residual and layer else new
        return xs

    return Block(weights, apply)


def _readout(draw: Draw, width: int) -> Block:
    """Return what the network is trained on: words at every step, at once or at the end."""
    words, when = draw.size(256, 32_768), draw.one("each", "each", "once", "last")

    def apply(weights: Any, xs: list[Array]) -> Array:
        if when == "each":
            each = [jax.nn.log_softmax(x @ weights) for x in xs]
            return sum((jnp.mean(y) for y in each), jnp.float32(0))
        seen = jnp.concatenate(xs, 0) if when == "once" else xs[-1]
        return jnp.mean(jax.nn.log_softmax(seen @ weights))

    return scoped("readout", Block(matrix(width, words), apply))


def _decoder(draw: Draw, width: int) -> Block:
    """Return a decoder that attends to the encoder's results at each step."""
    layers = [scoped(f"cell_{i}", cell(draw, width)) for i in range(draw.count(1, 3))]
    scored = draw.chance(0.5)
    weights = ([one.weights for one in layers], matrix(width, width), matrix(2 * width, width))

    def apply(weights: Any, memory: list[Array], xs: list[Array]) -> list[Array]:
        own, score, mix = weights
        seen, found = jnp.stack(memory, 1), []
        states = [(memory[-1], jnp.zeros_like(memory[-1])) for _ in layers]
        for x in xs:
            with jax.named_scope("attend"):
                query = states[-1][0] @ score if scored else states[-1][0]
                shares = jax.nn.softmax(jnp.einsum("btd,bd->bt", seen, query))
                x = jnp.concatenate([x, jnp.einsum("bt,btd->bd", shares, seen)], -1) @ mix
            for i, one in enumerate(layers):
                states[i] = one.apply(own[i], states[i], x)
                x = states[i][0]
            found.append(x)
        return found

    return scoped("decoder", Block(weights, apply))


def recurrent(draw: Draw, batch: int) -> RandomNetwork:
    """Return a stack of recurrent layers, perhaps with words embedded and attention behind."""
    width, layers = draw.one(128, 256, 512, 1024, 2048), draw.count(1, 8)
    both_ways = draw.chance(0.3)
    length = draw.size(3, max(4, STEPS // (layers * (1 + both_ways))))
    body, readout = stack(draw, width, layers, both_ways), _readout(draw, width)

    def loss(weights: Any, x: Array) -> Array:
        xs = [x[:, t] for t in range(length)]
        return readout.apply(weights[1], body.apply(weights[0], xs))

    return RandomNetwork((body.weights, readout.weights), loss, (floats(batch, length, width),))


def encoder_decoder(draw: Draw, batch: int) -> RandomNetwork:
    """Return a translator: encoder in one direction or two, decoder with attention."""
    width, layers = draw.one(256, 512, 1024), draw.count(1, 4)
    both_ways = draw.chance(0.5)
    length = draw.size(3, max(4, STEPS // (2 * layers * (1 + both_ways))))
    encoder = scoped("encoder", stack(draw, width, layers, both_ways))
    decoder, readout = _decoder(draw, width), _readout(draw, width)

    def loss(weights: Any, source: Array, target: Array) -> Array:
        first, second, last = weights
        memory = encoder.apply(first, [source[:, t] for t in range(length)])
        heard = [target[:, t] for t in range(length)]
        return readout.apply(last, decoder.apply(second, memory, heard))

    weights = (encoder.weights, decoder.weights, readout.weights)
    return RandomNetwork(
        weights, loss, (floats(batch, length, width), floats(batch, length, width))
    )
