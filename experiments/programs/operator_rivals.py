"""Rivals of `OperatorPredictor`: what others learn from measured GPUs of one that they never saw.

- ``NeuSight``: the utilisation of one tile's wave by a small network for each group, bounded by the
  roofline (ASPLOS 2025), and a launch. The tile of a row that was not measured is that of the
  nearest row that was, as they do.
- ``Habitat``: measured seconds of the same operator and nearest size on the measured GPU of nearest
  bandwidth, scaled by bandwidth (their wave scaling of memory-bound kernels); for products, whose
  kernels differ, a network on sizes and data sheets (USENIX ATC 2021).
- ``boosted trees``: LightGBM on roofline and wave features.
- ``network on sizes``: logarithms of sizes and of the data sheet.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import lightgbm
import numpy as np
import optax

from go_rl.costs.operators.examples import (
    ERROR_GROUPS,
    OperatorExamples,
    OperatorInputs,
    error_groups,
)
from go_rl.costs.operators.fitting import UNKNOWN_TILE
from go_rl.costs.operators.product_model import TILES
from go_rl.costs.operators.tables import OPERATORS, PRODUCTS
from go_rl.costs.operators.tables.operator_rows import FLOAT_BYTES, SIZES

Seconds = Callable[[Any, Any], Any]
"""Outputs of a network, and what is known without it → logarithms of seconds."""
Rival = Callable[[OperatorExamples, OperatorInputs], np.ndarray]
"""Measured rows to learn from, and operators on another GPU → their seconds, nan: not priced."""
NUMBERS = ("memory_bandwidth", "matrix_flops", "multiprocessors", "clock_hz", "l2_bytes",
           "memory_bytes")  # fmt: skip
HIDDEN, UPDATES, RATE = 48, 400, 5e-3
NETWORK_ROWS = 2000
"""Rows that a network learns from, drawn anew from fewer, so that one program serves all."""
TREES = {"objective": "l1", "learning_rate": 0.06, "num_leaves": 31, "num_threads": 1,
         "verbose": -1, "seed": 0}  # fmt: skip
TREE_COUNT = 300
USUAL_TILE = (128, 64)
STREAM_TILE = 1024
"""Elements that a block of a stream computes."""
LAUNCH = 1e-5
"""Seconds beside the roofline, so that trees and networks need not learn launches."""


def _by_group(
    learned: OperatorExamples, asked: OperatorInputs,
    of_group: Callable[[OperatorExamples, OperatorInputs], np.ndarray],
) -> np.ndarray:  # fmt: skip
    """Seconds, each group of operators learned by itself."""
    seconds = np.full(len(asked.rows), np.nan)
    left, right = error_groups(learned.inputs.rows), error_groups(asked.rows)
    for group in range(len(ERROR_GROUPS)):
        to_learn, to_price = np.flatnonzero(left == group), np.flatnonzero(right == group)
        if len(to_learn) and len(to_price):
            seconds[to_price] = of_group(learned.take(to_learn), asked.take(to_price))
    return seconds


def _sizes_and_sheets(inputs: OperatorInputs) -> np.ndarray:
    """[R, features] logarithms of sizes and of the data sheet, and which operator it is."""
    sizes = [np.log1p(inputs.rows.sizes[name]) for name in SIZES]
    sheets = [np.log(inputs.fields(name)) for name in NUMBERS]
    ops = [(inputs.rows.op == op).astype(np.float64) for op in OPERATORS]
    return np.stack([*sizes, *sheets, *ops], 1)


def _roofline(inputs: OperatorInputs) -> np.ndarray:
    busy = inputs.rows.flops() / inputs.fields("matrix_flops")
    moved = inputs.rows.least_bytes() / inputs.fields("memory_bandwidth")
    return np.log(np.maximum(busy, moved) + LAUNCH)


def _roofline_and_waves(inputs: OperatorInputs) -> np.ndarray:
    """[R, features]: sizes, intensity over ridge, waves and their fill, padding."""
    flops, moved = inputs.rows.flops(), inputs.rows.least_bytes()
    ridge = inputs.fields("matrix_flops") / inputs.fields("memory_bandwidth")
    features = [np.log1p(inputs.rows.sizes[name]) for name in SIZES]
    features += [np.log(flops / moved / ridge), np.log(moved / inputs.fields("l2_bytes")),
                 np.log(flops / inputs.fields("matrix_flops")),
                 np.log(moved / inputs.fields("memory_bandwidth"))]  # fmt: skip
    batch, rows, columns, _ = inputs.rows.products()
    for wide, tall in TILES[3:]:
        across, down = np.ceil(columns / wide), np.ceil(rows / tall)
        load = np.maximum(batch * across * down, 1) / inputs.fields("multiprocessors")
        padding = across * wide * down * tall / np.maximum(rows * columns, 1)
        features += [np.log(load), np.ceil(load) / load, padding]
    features += [(inputs.rows.op == op).astype(np.float64) for op in OPERATORS]
    return np.stack(features, 1)


def boosted_trees(learned: OperatorExamples, asked: OperatorInputs) -> np.ndarray:
    """Return [R] seconds by trees on the logarithm of seconds over the roofline."""

    def of_group(known: OperatorExamples, rows: OperatorInputs) -> np.ndarray:
        target = np.log(known.seconds) - _roofline(known.inputs)
        data = lightgbm.Dataset(_roofline_and_waves(known.inputs), target)
        model = lightgbm.train(TREES, data, TREE_COUNT)
        found = np.asarray(model.predict(_roofline_and_waves(rows)), np.float64)
        return np.exp(found + _roofline(rows))

    return _by_group(learned, asked, of_group)


def network_on_sizes(learned: OperatorExamples, asked: OperatorInputs) -> np.ndarray:
    """Return [R] seconds by a network on sizes and data sheets."""

    def of_group(known: OperatorExamples, rows: OperatorInputs) -> np.ndarray:
        features = _sizes_and_sheets(known.inputs), _sizes_and_sheets(rows)
        middle = np.log(known.seconds).mean()
        return np.exp(_network(*features, np.log(known.seconds), _plain,
                               np.full(len(known.seconds), middle),
                               np.full(len(rows.rows), middle)))  # fmt: skip

    return _by_group(learned, asked, of_group)


def habitat(learned: OperatorExamples, asked: OperatorInputs) -> np.ndarray:
    """Return [R] seconds: streams scaled from another GPU, products by `network_on_sizes`."""
    seconds = np.full(len(asked.rows), np.nan)
    own_products, products = (np.flatnonzero(each.rows.is_any(PRODUCTS))
                              for each in (learned.inputs, asked))  # fmt: skip
    seconds[products] = network_on_sizes(learned.take(own_products), asked.take(products))
    known = learned.inputs
    bandwidth = known.fields("memory_bandwidth")
    own = asked.fields("memory_bandwidth")
    moved = asked.rows.least_bytes() / own
    measured = known.rows.least_bytes() / bandwidth
    sizes = np.log1p(np.stack([known.rows.sizes[name] for name in ("batch", "width")], 1))
    wanted = np.log1p(np.stack([asked.rows.sizes[name] for name in ("batch", "width")], 1))
    for row in np.flatnonzero(~asked.rows.is_any(PRODUCTS)):
        same = np.flatnonzero(known.rows.op == asked.rows.op[row])
        apart = np.abs(np.log(bandwidth[same] / own[row]))
        origin = same[apart <= apart.min() + 1e-9]
        near = origin[int(np.abs(sizes[origin] - wanted[row]).sum(1).argmin())]
        seconds[row] = learned.seconds[near] * moved[row] / measured[near]
    return seconds


def neusight(learned: OperatorExamples, asked: OperatorInputs) -> np.ndarray:
    """Return [R] seconds by the utilisation of one tile's wave."""

    def of_group(known: OperatorExamples, rows: OperatorInputs) -> np.ndarray:
        near = _nearest(known.inputs, rows)
        left, right = _waves(known.inputs, known.tile), _waves(rows, known.tile[near])
        # Without a launch, utilisation would have to vanish: median over GPUs of the fastest row.
        device = known.inputs.device
        fastest = [known.seconds[device == d].min() for d in np.unique(device)]
        launch = float(np.log(np.median(fastest)))
        lefts, rights = (np.column_stack([each[1], np.full(len(each[1]), launch)])
                         for each in (left, right))  # fmt: skip

        found = _network(left[0], right[0], np.log(known.seconds), _by_waves, lefts, rights)
        return np.exp(found)

    return _by_group(learned, asked, of_group)


def _plain(out: Any, middle: Any) -> Any:
    """Logarithms of seconds as they come."""
    return out[:, 0] + middle


def _by_waves(out: Any, waves: Any) -> Any:
    """Logarithms of seconds at a utilisation that grows with the waves, and of the launch."""
    start, slope = jax.nn.sigmoid(out[:, 0] + 1), jax.nn.sigmoid(out[:, 1] - 2)
    used = jnp.clip(start - slope / waves[:, 1], 0.01, 1.0)
    return jnp.logaddexp(waves[:, 0] - jnp.log(used), waves[:, 2])


def _nearest(known: OperatorInputs, rows: OperatorInputs) -> np.ndarray:
    """[R] the learned row of most alike sizes, on the GPU of most alike peak."""
    left, right = (np.stack([np.log1p(each.rows.sizes[name]) for name in SIZES], 1)
                   for each in (known, rows))  # fmt: skip
    peaks = np.log(known.fields("matrix_flops"))
    own = np.log(rows.fields("matrix_flops"))
    return np.array([int((np.abs(left - row).sum(1) + np.abs(peaks - peak)).argmin())
                     for row, peak in zip(right, own, strict=True)])  # fmt: skip


def _waves(inputs: OperatorInputs, tile: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """[R, features] of a tile on a multiprocessor, and [R, 2] logarithm of seconds of all waves at
    full use, and waves."""
    size = np.array([*TILES, USUAL_TILE], np.float64)[np.where(tile == UNKNOWN_TILE, -1, tile)]
    batch, rows, columns, summed = inputs.rows.products()
    is_product = inputs.rows.is_any(PRODUCTS)
    elements = inputs.rows.sizes["batch"].astype(np.float64) * inputs.rows.sizes["width"]
    tiles = batch * np.ceil(columns / size[:, 0]) * np.ceil(rows / size[:, 1])
    tiles = np.where(is_product, tiles, np.ceil(elements / STREAM_TILE))
    flops = np.where(is_product, 2 * size[:, 0] * size[:, 1] * summed, STREAM_TILE)
    moved = FLOAT_BYTES * (size.sum(1) * summed + size[:, 0] * size[:, 1])
    per_element = inputs.rows.least_bytes() / np.maximum(elements, 1)
    moved = np.where(is_product, moved, per_element * STREAM_TILE)
    processors = inputs.fields("multiprocessors")
    waves = np.ceil(tiles / processors)
    busy = flops / (inputs.fields("matrix_flops") / processors)
    fetch = inputs.rows.least_bytes() / tiles / (inputs.fields("memory_bandwidth") / processors)
    features = [np.log(waves), np.log(flops), np.log(moved), np.log(busy), np.log(fetch),
                np.log(busy / fetch), np.log(moved * processors / inputs.fields("l2_bytes")),
                np.log(tiles / processors), np.log(inputs.fields("memory_bandwidth") / processors),
                np.log(inputs.fields("matrix_flops") / processors),
                *[(inputs.rows.op == op).astype(np.float64) for op in OPERATORS]]  # fmt: skip
    bound = np.log(np.maximum(busy, fetch) * waves)
    return np.stack(features, 1), np.stack([bound, waves], 1)


def _network(
    known: np.ndarray, asked: np.ndarray, target: np.ndarray,
    seconds: Seconds, known_waves: np.ndarray, asked_waves: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """[R] logarithms of seconds by two hidden layers, trained on the mean absolute error."""
    some = np.random.default_rng(0).permutation(np.arange(NETWORK_ROWS) % len(known))
    if len(known) > NETWORK_ROWS:
        some = np.random.default_rng(0).permutation(len(known))[:NETWORK_ROWS]
    known, target, known_waves = known[some], target[some], known_waves[some]
    middle, scale = known.mean(0), known.std(0) + 1e-6
    scaled = [jnp.asarray((each - middle) / scale, jnp.float32) for each in (known, asked)]
    waves = [jnp.asarray(each, jnp.float32) for each in (known_waves, asked_waves)]
    keys = jax.random.split(jax.random.key(0), 3)
    widths = (known.shape[1], HIDDEN, HIDDEN, 2)
    start = [
        (jax.random.normal(key, (wide, out)) / wide**0.5, jnp.zeros(out))
        for key, wide, out in zip(keys, widths, widths[1:], strict=False)
    ]
    params = _trained(start, scaled[0], waves[0], jnp.asarray(target, jnp.float32), seconds)
    return np.asarray(seconds(_output(params, scaled[1]), waves[1]), np.float64)


def _output(params: Any, x: Any) -> Any:
    for weight, bias in params[:-1]:
        x = jax.nn.relu(x @ weight + bias)
    return x @ params[-1][0] + params[-1][1]


@partial(jax.jit, static_argnames="seconds")
def _trained(start: Any, x: Any, waves: Any, goal: Any, seconds: Seconds) -> Any:
    rule = optax.adamw(optax.cosine_decay_schedule(RATE, UPDATES), weight_decay=1e-3)

    def loss(params: Any) -> Any:
        return jnp.abs(seconds(_output(params, x), waves) - goal).mean()

    def update(state: Any, _: Any) -> Any:
        params, moments = state
        change, moments = rule.update(jax.grad(loss)(params), moments, params)
        return (optax.apply_updates(params, change), moments), None

    return jax.lax.scan(update, (start, rule.init(start)), None, length=UPDATES)[0][0]


RIVALS: dict[str, Rival] = {
    "NeuSight, ours of their idea": neusight,
    "Habitat": habitat,
    "boosted trees": boosted_trees,
    "network on sizes": network_on_sizes,
}
