"""Latency of operators on GPUs of which only the data sheet is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from predictors.operators import DEVICES, FLOOR, SMALL, toy_examples, toy_predictor

from go_rl.core import CheckpointError, TrainingError
from go_rl.predictors.operators.calibration import blend
from go_rl.predictors.operators.examples import OperatorInputs
from go_rl.predictors.operators.predictor import OperatorFitConfig, OperatorPredictor
from go_rl.predictors.operators.similarity import bounded_by_power, weights_of
from go_rl.programs.devices import find_device
from go_rl.programs.operators import OPERATORS, OperatorRows
from go_rl.programs.operators.operator_rows import SIZES, sizes_of

SOURCES = tuple(find_device(name) for name in ("p100", "p4", "t4", "v100", "a100-40gb"))
USUAL = {"B": 32, "M": 512, "N": 768, "K": 768, "H": 1024, "input_channel": 64,
         "output_channel": 64, "kernel_size": 3, "input_size": 56, "stride": 1,
         "padding": 1}  # fmt: skip


def one(op: str, device: str, **change: int) -> OperatorInputs:
    sizes = {**USUAL, **({"B": 1} if op == "linear" else {}), **change}
    columns = {n: np.array([sizes[n] if n in sizes_of(op) else 0], np.int64) for n in SIZES}
    rows = OperatorRows(np.array([op]), columns)
    return OperatorInputs(rows, (find_device(device),), np.zeros(1, np.int64))


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


def test_weights_favour_what_is_alike():
    found = weights_of(find_device("a100-80gb"), SOURCES, 1.0, 1.0)
    assert found.sum() == pytest.approx(1)
    assert found[4] > 0.9
    low_power = weights_of(find_device("l4"), SOURCES, 0.3, 2.0)
    assert low_power[2] > low_power[3]
    assert bounded_by_power(find_device("l4")) == 1
    assert bounded_by_power(find_device("h100")) == 0


def test_a_blend_of_equal_answers_is_their_answer():
    mean, spread = blend(np.full((3, 2), -7.0), np.full((3, 2), 1 / 3))
    np.testing.assert_allclose(mean, -7)
    np.testing.assert_allclose(spread, 0.1)


def test_another_version_is_one_clear_error(tmp_path, monkeypatch):
    path = tmp_path / "mine.npz"
    monkeypatch.setattr("go_rl.predictors.operators.predictor.INTERFACE", 0)
    toy_predictor().save(path)
    monkeypatch.undo()
    with pytest.raises(CheckpointError, match="is of version 0"):
        OperatorPredictor.load(path)


@pytest.fixture(scope="module")
def shipped() -> OperatorPredictor:
    return OperatorPredictor.load("gpus-1.0")


@pytest.mark.parametrize("op", OPERATORS)
def test_what_ships_prices_every_operator(op, shipped):
    found = shipped.interval(one(op, "t4"))
    assert 5e-6 < found.low[0] < found.seconds[0] < found.high[0] < 1
    assert not found.unlike[0]


def test_more_work_costs_no_less(shipped):
    """Up to a hundredth near the floor, where the choice of tile is blurred."""
    for op, size in (("linear", "M"), ("bmm", "N"), ("relu", "B"), ("softmax", "B")):
        seconds = [shipped.predict(one(op, "h100", **{size: n}))[0] for n in (64, 256, 1024)]
        assert seconds[0] < 1.01 * seconds[1], op
        assert seconds[1] < 1.01 * seconds[2], op


def test_large_products_reach_a_plausible_share_of_the_peak(shipped):
    for name in ("a100-80gb", "h100", "v100"):
        inputs = one("linear", name, M=8192, N=4096, K=4096)
        share = inputs.rows.flops()[0] / shipped.predict(inputs)[0]
        assert 0.45 < share / find_device(name).matrix_flops < 1


def test_faster_devices_are_faster(shipped):
    seconds = [shipped.predict(one("linear", name, M=4096, N=4096, K=4096))[0]
               for name in ("h100", "a100-40gb", "v100", "t4", "p4")]  # fmt: skip
    assert seconds == sorted(seconds)


@pytest.mark.parametrize(
    ("op", "device", "change", "unlike"),
    [
        ("linear", "t4", {}, False),
        ("linear", "t4", {"N": 500_000}, True),
        ("relu", "v100", {"H": 5120}, False),
        ("relu", "v100", {"H": 100_000}, True),
        ("conv", "t4", {"kernel_size": 5}, True),
        ("linear", "h100", {}, True),
        ("linear", "mi210", {}, True),
        ("linear", "a100-80gb", {}, False),
    ],
)
def test_what_lies_outside_is_flagged(op, device, change, unlike, shipped):
    assert bool(shipped.interval(one(op, device, **change)).unlike[0]) is unlike


def test_the_file_that_ships_is_small():
    from go_rl.predictors.operators.predictor import SHIPPED

    assert (SHIPPED / "gpus-1.0.npz").stat().st_size < 2_000_000
    assert DEVICES
