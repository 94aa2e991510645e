"""Networks on sequences: stacks of layers, towers that merge, recommendation, several inputs."""

from __future__ import annotations

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
from go_rl.graphs.zoo.generate.layers import (
    attention,
    experts,
    gated_perceptron,
    mixer,
    perceptron,
    state_space,
)
from go_rl.graphs.zoo.models.building import floats, integers

LAYERS = {
    "attention": attention, "experts": experts, "gated": gated_perceptron, "perceptron": perceptron
}  # fmt: skip


def _mean_square(y: Array) -> Array:
    return jnp.mean(jnp.square(y))


def layered(draw: Draw, batch: int) -> RandomNetwork:
    """Return a stack of 2 to 24 layers of one kind or several, with words behind or without."""
    width, length = draw.one(64, 128, 256, 512, 1024), draw.one(16, 32, 64, 128, 256)
    kind = draw.one(*LAYERS, "mixer", "mixed")
    blocks = []
    for _ in range(draw.size(2, 24 if kind != "experts" else 8)):
        one = draw.one(*LAYERS) if kind == "mixed" else kind
        block = mixer(draw, width, length) if one == "mixer" else LAYERS[one](draw, width)
        blocks.append(block)
    body, words = chained(blocks), draw.one(0, draw.size(512, 32_768))
    weights = (body.weights, matrix(width, words) if words else ())

    def loss(weights: Any, x: Array) -> Array:
        y = body.apply(weights[0], x)
        return jnp.mean(jax.nn.log_softmax(y @ weights[1])) if words else _mean_square(y)

    return RandomNetwork(weights, loss, (floats(batch, length, width),))


def scans(draw: Draw, batch: int) -> RandomNetwork:
    """Return state-space layers, some with attention or perceptrons between them."""
    width, length = draw.one(64, 128, 256, 512), draw.one(32, 64, 128)
    blocks = []
    for _ in range(draw.size(1, 10)):
        blocks.append(state_space(draw, width, length))
        if draw.chance(0.4):
            blocks.append(draw.one(attention, gated_perceptron, perceptron)(draw, width))
    body = chained(blocks)
    return RandomNetwork(
        body.weights, lambda weights, x: _mean_square(body.apply(weights, x)),
        (floats(batch, length, width),),
    )  # fmt: skip


def towers(draw: Draw, batch: int) -> RandomNetwork:
    """Return two to ten towers of unlike depth, on one input or on one each, merged."""
    width, length, many = draw.one(128, 256, 512, 1024), draw.one(16, 32, 64), draw.count(2, 10)
    own = [
        scoped(
            f"tower_{i}",
            chained([draw.one(*LAYERS.values())(draw, width) for _ in range(draw.count(1, 5))]),
        )
        for i in range(many)
    ]
    top = scoped("top", chained([perceptron(draw, width) for _ in range(draw.count(1, 3))]))
    shared, how = draw.chance(0.4), draw.one("sum", "joined", "products")
    weights = ([one.weights for one in own], matrix(many * width, width), top.weights)

    def loss(weights: Any, *xs: Array) -> Array:
        seen = xs * many if shared else xs
        ys = [one.apply(w, x) for one, w, x in zip(own, weights[0], seen, strict=True)]
        if how == "joined":
            y = jnp.concatenate(ys, -1) @ weights[1]
        elif how == "sum":
            y = sum(ys[1:], ys[0])
        else:
            y = sum((a * b for i, a in enumerate(ys) for b in ys[i + 1 :]), jnp.zeros_like(ys[0]))
        return _mean_square(top.apply(weights[2], y))

    inputs = tuple(floats(batch, length, width) for _ in range(1 if shared else many))
    return RandomNetwork(weights, loss, inputs)


def recommendation(draw: Draw, batch: int) -> RandomNetwork:
    """Return wide embeddings, their crosses, and perceptrons below and above (DLRM, DCN)."""
    width, tables, rows = draw.one(16, 32, 64, 128), draw.count(4, 40), draw.size(1_000, 200_000)
    batch, crosses = 16 * batch, draw.count(0, 3)
    bottom, joined = scoped("bottom", perceptron(draw, width)), (tables + 1) * width
    cross = [(matrix(joined, 1), floats(joined)) for _ in range(crosses)]
    hidden = draw.one(128, 256, 512)
    top = scoped("top", chained([perceptron(draw, hidden) for _ in range(draw.count(1, 4))]))
    pairs = draw.chance(0.5)
    inside = joined + ((tables + 1) ** 2 if pairs else 0)
    weights = ([floats(rows, width) for _ in range(tables)], bottom.weights, cross,
               matrix(inside, hidden), top.weights)  # fmt: skip

    def loss(weights: Any, dense: Array, chosen: Array) -> Array:
        embedded, below, crossing, into, above = weights
        found = [table[chosen[:, i]] for i, table in enumerate(embedded)]
        found.append(bottom.apply(below, dense))
        x0 = x = jnp.concatenate(found, -1)
        for i, (kernel, bias) in enumerate(crossing):
            with jax.named_scope(f"cross_{i}"):
                x = x0 * (x @ kernel) + bias + x
        if pairs:
            each = jnp.stack(found, 1)
            products = (each @ each.swapaxes(1, 2)).reshape(batch, -1)
            x = jnp.concatenate([x, products], -1)
        return _mean_square(top.apply(above, x @ into))

    return RandomNetwork(weights, loss, (floats(batch, width), integers(batch, tables)))


def several_inputs(draw: Draw, batch: int) -> RandomNetwork:
    """Return encoders of two or three inputs of unlike length, and layers in which each attends to
    the others (multi-modal)."""
    width, many = draw.one(128, 256, 512), draw.count(2, 3)
    lengths = [draw.one(16, 32, 64, 128) for _ in range(many)]
    own = [
        scoped(f"input_{i}", chained([draw.one(attention, gated_perceptron)(draw, width)
                                      for _ in range(draw.count(1, 6))]))
        for i in range(many)
    ]  # fmt: skip
    rounds = draw.count(1, 4)
    weights = ([one.weights for one in own],
               [[matrix(width, width) for _ in range(many)] for _ in range(rounds)])  # fmt: skip

    def loss(weights: Any, *xs: Array) -> Array:
        ys = [one.apply(w, x) for one, w, x in zip(own, weights[0], xs, strict=True)]
        for i, turn in enumerate(weights[1]):
            with jax.named_scope(f"exchange_{i}"):
                everything = jnp.concatenate(ys, 1)
                ys = [
                    y + jax.nn.softmax((y @ w) @ everything.swapaxes(1, 2)) @ everything
                    for y, w in zip(ys, turn, strict=True)
                ]
        return sum((_mean_square(y) for y in ys), jnp.float32(0))

    return RandomNetwork(weights, loss, tuple(floats(batch, n, width) for n in lengths))


def message_passing(draw: Draw, batch: int) -> RandomNetwork:
    """Return graph layers: gather senders, transform, add up at receivers, update nodes."""
    width, nodes = draw.one(16, 32, 64, 128, 256), draw.size(200, 20_000)
    edges, rounds = nodes * draw.count(2, 10), draw.size(1, 12)
    attends, edge_state = draw.chance(0.4), draw.chance(0.4)
    layers: list[Block] = [perceptron(draw, width) for _ in range(rounds)]
    weights = ([one.weights for one in layers],
               [(matrix(2 * width, width), matrix(width, 1)) for _ in range(rounds)])  # fmt: skip

    def turn(one: Block, weights: Any, x: Array, state: Array, ends: tuple[Array, Array]) -> Any:
        own, (join, score) = weights
        senders, receivers = ends
        message = jnp.concatenate([x[senders], x[receivers]], -1) @ join
        if edge_state:
            state = message = jax.nn.relu(message + state)
        if attends:
            logits = jnp.exp(jnp.tanh(message @ score))
            total = jax.ops.segment_sum(logits, receivers, nodes)
            message = message * logits / (total[receivers] + 1e-6)
        return x + one.apply(own, jax.ops.segment_sum(message, receivers, nodes)), state

    def loss(weights: Any, x: Array, senders: Array, receivers: Array) -> Array:
        state = jnp.zeros((edges, width))
        for i, (one, *held) in enumerate(zip(layers, *weights, strict=True)):
            with jax.named_scope(f"round_{i}"):
                x, state = turn(one, held, x, state, (senders, receivers))
        return _mean_square(x)

    return RandomNetwork(weights, loss, (floats(nodes, width), integers(edges), integers(edges)))
