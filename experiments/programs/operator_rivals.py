"""Rival of `OperatorPredictor`: boosted trees (LightGBM) on roofline and wave features."""

from __future__ import annotations

import lightgbm
import numpy as np

from go_rl.costs.operators.examples import (
    ERROR_GROUPS,
    OperatorExamples,
    OperatorInputs,
    error_groups,
)
from go_rl.costs.operators.product_model import TILES
from go_rl.costs.operators.tables import OPERATORS
from go_rl.costs.operators.tables.operator_rows import SIZES

TREES = {"objective": "l1", "learning_rate": 0.06, "num_leaves": 31, "num_threads": 1,
         "verbose": -1, "seed": 0}  # fmt: skip
TREE_COUNT = 300
LAUNCH = 1e-5
"""Seconds beside the roofline, so that trees need not learn launches."""


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
    """Return [R] seconds by trees on the logarithm of seconds over the roofline, each group of
    operators learned by itself.

    Args:
        learned: measured rows of other GPUs.
        asked: operators on a GPU of which nothing is known but the data sheet.
    """
    seconds = np.full(len(asked.rows), np.nan)
    left, right = error_groups(learned.inputs.rows), error_groups(asked.rows)
    for group in range(len(ERROR_GROUPS)):
        to_learn, to_price = np.flatnonzero(left == group), np.flatnonzero(right == group)
        if not len(to_learn) or not len(to_price):
            continue
        known, rows = learned.take(to_learn), asked.take(to_price)
        target = np.log(known.seconds) - _roofline(known.inputs)
        data = lightgbm.Dataset(_roofline_and_waves(known.inputs), target)
        found = lightgbm.train(TREES, data, TREE_COUNT).predict(_roofline_and_waves(rows))
        seconds[to_price] = np.exp(np.asarray(found, np.float64) + _roofline(rows))
    return seconds
