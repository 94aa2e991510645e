"""Latency of operators on GPUs of which only the data sheet is known."""

from dataclasses import replace

import numpy as np
import pytest
from costs.operators.operators import FLOOR, SMALL, toy_examples, toy_predictor

from go_rl.core import CheckpointError, TrainingError
from go_rl.costs.devices import device_names, find_device
from go_rl.costs.operators import GPU_WEIGHTS
from go_rl.costs.operators.examples import OperatorInputs
from go_rl.costs.operators.predictor import KIND, OperatorFitConfig, OperatorPredictor
from go_rl.costs.operators.tables import OPERATORS, OperatorRows
from go_rl.costs.operators.tables.operator_rows import SIZES, sizes_of

USUAL = {"batch": 32, "rows": 512, "depth": 768, "columns": 768, "width": 1024, "input_channel": 64,
         "output_channel": 64, "kernel_size": 3, "input_size": 56, "stride": 1,
         "padding": 1}  # fmt: skip


def one(op: str, device: str, **change: int) -> OperatorInputs:
    sizes = {**USUAL, **({"batch": 1} if op == "linear" else {}), **change}
    columns = {n: np.array([sizes[n] if n in sizes_of(op) else 0], np.int64) for n in SIZES}
    rows = OperatorRows(np.array([op]), columns)
    return OperatorInputs(rows, (find_device(device),), np.zeros(1, np.int64))


@pytest.mark.slow
def test_it_predicts_a_device_that_it_never_saw():
    """A P100 of the toy world: within a third, where four seconds in five are bandwidth or peak."""
    examples = toy_examples()
    sheet = find_device("p100")
    inputs = OperatorInputs(examples.inputs.rows, (sheet,), np.zeros(len(examples.seconds), int))
    moved = inputs.rows.least_bytes() / (0.8 * sheet.memory_bandwidth)
    busy = inputs.rows.flops() / (0.7 * sheet.matrix_flops)
    truth = FLOOR + np.where(inputs.rows.op == "linear", np.maximum(busy, moved), moved)
    error = np.abs(toy_predictor().predict(inputs) / truth - 1)
    assert error.mean() < 0.34


def test_the_interval_holds_the_prediction_and_is_finite():
    found = toy_predictor().interval(toy_examples().inputs)
    assert (found.low < found.seconds).all()
    assert (found.seconds < found.high).all()
    assert np.isfinite(found.high).all()
    truth = toy_examples().seconds
    assert ((found.low <= truth) & (truth <= found.high)).mean() > 0.8


def test_a_fit_needs_two_devices_and_rows():
    examples = toy_examples()
    few = examples.take(np.arange(5))
    with pytest.raises(TrainingError, match="rows or more of each device"):
        OperatorPredictor.fit(examples.take(np.arange(0, 240, 30)), SMALL)
    alone = replace(few, inputs=replace(few.inputs, devices=few.inputs.devices[:1]))
    with pytest.raises(TrainingError, match="2 devices or more"):
        OperatorPredictor.fit(alone, SMALL)
    with pytest.raises(TrainingError, match="updates must be positive"):
        OperatorFitConfig(updates=0)


def test_operators_that_it_did_not_learn_are_refused():
    with pytest.raises(TrainingError, match="learned nothing of bmm"):
        toy_predictor().predict(one("bmm", "t4"))


def test_another_version_is_one_clear_error(tmp_path, monkeypatch):
    path = tmp_path / "mine.npz"
    older = replace(KIND, required={"interface": 0})
    monkeypatch.setattr("go_rl.costs.operators.predictor.KIND", older)
    toy_predictor().save(path)
    monkeypatch.undo()
    with pytest.raises(CheckpointError, match="its interface is 0, and this version of go_rl"):
        OperatorPredictor.load(path)


@pytest.fixture(scope="module")
def shipped() -> OperatorPredictor:
    return OperatorPredictor.load(GPU_WEIGHTS)


@pytest.mark.parametrize("op", OPERATORS)
def test_what_ships_prices_every_operator(op, shipped):
    found = shipped.interval(one(op, "t4"))
    assert 5e-6 < found.low[0] < found.seconds[0] < found.high[0] < 1
    assert not found.unlike[0]


NOT_HERE = ("h100", "h100-pcie", "h200", "l4", "a40", "rtx-3090", "rtx-2080-ti")


@pytest.mark.parametrize("name", NOT_HERE)
@pytest.mark.parametrize(
    ("op", "size"),
    [
        ("linear", "rows"),
        ("linear", "columns"),
        ("bmm", "batch"),
        ("gelu", "batch"),
        ("softmax", "width"),
        ("ln", "batch"),
    ],
)
def test_small_steps_in_size_cost_no_less(name, op, size, shipped):
    """From tiny to huge by a fifth: no step is 6 % faster (another tile, sums that are split no
    more); no interval is wider than a factor of ten."""
    steps = np.unique(np.round(2 ** np.arange(0, 15, 0.25)).astype(np.int64))
    each = one(op, name)
    columns = {n: np.repeat(v, len(steps)) for n, v in each.rows.sizes.items()} | {size: steps}
    rows = OperatorRows(np.repeat(each.rows.op, len(steps)), columns)
    found = shipped.interval(OperatorInputs(rows, each.devices, np.zeros(len(steps), np.int64)))
    assert (found.seconds[1:] > 0.94 * found.seconds[:-1]).all()
    assert (found.high < 10 * found.low).all()


@pytest.mark.parametrize("op", ["linear", "bmm", "conv", "relu", "softmax", "ln"])
def test_no_device_exceeds_its_peak_or_its_bandwidth(op, shipped):
    """Operators too large for any cache on every device of the table; Winograd saves at most 2.25,
    a slack of 1.1."""
    is_stream = op in ("relu", "softmax", "ln")
    for name in device_names():
        large = {"batch": 4096 if is_stream else 64, "rows": 4096, "depth": 4096, "columns": 4096,
                 "width": 65536, "input_channel": 512, "output_channel": 512}  # fmt: skip
        inputs = one(op, name, **(large | ({"batch": 1} if op == "linear" else {})))
        found = shipped.interval(inputs)
        sheet = find_device(name)
        busy = inputs.rows.flops()[0] / sheet.matrix_flops / (2.475 if op == "conv" else 1)
        moved = inputs.rows.least_bytes()[0] / sheet.memory_bandwidth if is_stream else 0.0
        assert max(busy, moved) < found.seconds[0] < 40 * max(busy, moved), name
        assert 0 < found.low[0] < found.seconds[0] < found.high[0] < np.inf


@pytest.mark.parametrize(
    ("op", "device", "change", "unlike"),
    [
        ("linear", "t4", {}, False),
        ("linear", "t4", {"depth": 500_000}, True),
        ("relu", "v100", {"width": 5120}, False),
        ("relu", "v100", {"width": 100_000}, True),
        ("conv", "t4", {"kernel_size": 5}, True),
        ("linear", "h100", {}, True),
        ("linear", "mi210", {}, True),
        ("linear", "a100-80gb", {}, False),
    ],
)
def test_what_lies_outside_is_flagged(op, device, change, unlike, shipped):
    assert bool(shipped.interval(one(op, device, **change)).unlike[0]) is unlike
