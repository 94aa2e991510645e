"""A toy world of operators: GPUs whose seconds follow their bandwidth and peak."""

from functools import cache

import numpy as np

from go_rl.costs.devices import find_device
from go_rl.costs.operators.examples import OperatorExamples, OperatorInputs
from go_rl.costs.operators.fitting import UNKNOWN_TILE
from go_rl.costs.operators.predictor import OperatorFitConfig, OperatorPredictor
from go_rl.costs.operators.tables import OperatorRows
from go_rl.costs.operators.tables.operator_rows import SIZES

DEVICES = ("t4", "v100", "a100-40gb")
SMALL = OperatorFitConfig(rows=60, calibration_rows=30, updates=60)
FLOOR = 3e-5


@cache
def toy_examples(count: int = 40) -> OperatorExamples:
    """So many of ``linear`` and of ``relu`` on each device."""
    rng = np.random.default_rng(0)
    total = 2 * count * len(DEVICES)
    op = np.tile(np.repeat(["linear", "relu"], count), len(DEVICES))
    linear = op == "linear"
    draw = np.exp2(rng.uniform(5, 12, size=(4, total))).astype(np.int64)
    sizes = {name: np.zeros(total, np.int64) for name in SIZES}
    sizes["batch"] = np.where(linear, 1, draw[0])
    for name, values in zip(("rows", "depth", "columns"), draw[1:], strict=True):
        sizes[name] = np.where(linear, values, 0)
    sizes["width"] = np.where(linear, 0, draw[1])
    device = np.repeat(np.arange(len(DEVICES)), 2 * count)
    sheets = tuple(find_device(name) for name in DEVICES)
    inputs = OperatorInputs(OperatorRows(op, sizes), sheets, device)
    busy = inputs.rows.flops() / (0.7 * inputs.fields("matrix_flops"))
    moved = inputs.rows.least_bytes() / (0.8 * inputs.fields("memory_bandwidth"))
    seconds = FLOOR + np.where(linear, np.maximum(busy, moved), moved)
    return OperatorExamples(inputs, seconds, np.full(total, UNKNOWN_TILE), np.full(total, np.nan))


@cache
def toy_predictor() -> OperatorPredictor:
    return OperatorPredictor.fit(toy_examples(), SMALL)
