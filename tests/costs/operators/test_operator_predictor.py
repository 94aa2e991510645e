"""Latency of operators on GPUs of which only the data sheet is known."""

from dataclasses import replace

import numpy as np
import pytest
from costs.operators.operators import FLOOR, SMALL, toy_examples, toy_predictor

from go_rl.core import CheckpointError, TrainingError
from go_rl.costs.devices import device_names, find_device, with_launch
from go_rl.costs.operators import GPU_WEIGHTS
from go_rl.costs.operators.architectures import AMPERE, VOLTA, generation_of, power_ratio
from go_rl.costs.operators.calibration import CELLS, bounds, calibrate, cells
from go_rl.costs.operators.examples import ERROR_GROUPS, OperatorInputs
from go_rl.costs.operators.predictor import KIND, OperatorPredictor
from go_rl.costs.operators.pricing import LogSeconds
from go_rl.costs.operators.tables import OPERATORS, STREAMS, OperatorRows
from go_rl.costs.operators.tables.operator_rows import SIZES, sizes_of

USUAL = {"batch": 32, "rows": 512, "depth": 768, "columns": 768, "width": 1024, "input_channel": 64,
         "output_channel": 64, "kernel_size": 3, "input_size": 56, "stride": 1, "padding": 1,
         "heads": 12, "groups": 1, "queries": 256, "keys": 256, "causal": 0}  # fmt: skip
OF_OP = {"linear": {"batch": 1}, "batchnorm": {"kernel_size": 1, "padding": 0},
         "attention": {"depth": 64}, "grouped": {"groups": 4}}  # fmt: skip


def one(op: str, device: str, **change: int) -> OperatorInputs:
    sizes = {**USUAL, **OF_OP.get(op, {}), **change}
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


def test_operators_that_it_did_not_learn_are_refused():
    with pytest.raises(TrainingError, match="learned nothing of bmm"):
        toy_predictor().predict(one("bmm", "t4"))


def test_power_bounds_small_boards():
    assert [generation_of(find_device(name)) for name in ("t4", "l4")] == [VOLTA, AMPERE]
    assert generation_of(find_device("mi100")) is None
    ratio = {name: power_ratio(find_device(name)) for name in device_names()}
    assert ratio["p4"] == pytest.approx(5.699 * 25 / 75)
    assert min(ratio["t4"], ratio["p4"], ratio["l4"]) > 1.8
    assert max(ratio["v100"], ratio["p100"], ratio["h100"]) < 1
    unknown = replace(find_device("t4"), board_watts=None, architecture=None)
    assert power_ratio(unknown) == pytest.approx(8.141 * 13 / 80)


def _logs(part: np.ndarray, floor: float = 1e-5, start: float = 5e-6) -> LogSeconds:
    """Operators of a known GPU's part on one host."""
    body, count = np.log(part + start), len(part)
    host = np.full(count, np.log(floor))
    total = np.logaddexp(12 * body, 12 * host) / 12
    return LogSeconds(total, body, host, np.full(count, np.log(start)), body)


def test_cells_are_operators_by_their_length():
    """Of the GPU's part over a floor of 10 µs: up to 4.5 times, up to 12 times, longer."""
    logs = _logs(np.array([1e-6, 4e-5, 5e-5, 1.1e-4, 1.3e-4]))
    assert cells(np.zeros(5, np.int64), logs).tolist() == [0, 0, 1, 1, 2]
    assert cells(np.full(5, 5), logs).tolist() == [15, 15, 16, 16, 17]


def test_bounds_scale_host_and_gpu_apart():
    """By hand: a long operator errs as the GPU does, a tiny one as the host, faster or slower."""
    logs, group = _logs(np.array([1.0, 1e-9])), np.full(2, ERROR_GROUPS.index("element-wise"))
    low, high = bounds(np.full(2, np.log(2)), group, logs, np.zeros(2, bool))
    np.testing.assert_allclose(np.exp(low), [0.5, 1e-5 / 2.5], rtol=1e-4)
    np.testing.assert_allclose(np.exp(high), [2.0, 1.9e-5], rtol=1e-4)
    low, high = bounds(np.zeros(2), group, logs, np.ones(2, bool))
    np.testing.assert_allclose(np.exp(high), [1.0, 1.35e-5], rtol=1e-4)


def test_half_widths_cover_a_gpu_by_what_others_err():
    """Five GPUs, each with a bias of its own within a tenth: nine rows in ten lie inside."""
    rng = np.random.default_rng(0)
    device = np.repeat(np.arange(5), 1000)
    logs, group = _logs(np.full(5000, 1e-2)), np.zeros(5000, np.int64)
    error = rng.normal(0, 0.3, 5000) + np.linspace(-0.1, 0.1, 5)[device]
    found = calibrate(logs.body + error, logs, group, device)
    inside = np.abs(error) <= found.half_width[2]
    assert all(0.85 < inside[device == each].mean() < 0.97 for each in range(5))
    assert found.half_width[0] == pytest.approx(found.half_width[2], rel=0.01), "of its group"
    assert found.half_width[9] == pytest.approx(0.7 * found.half_width[2] / 0.5, rel=0.3), "unknown"
    assert len(found.half_width) == CELLS


def test_products_and_streams_have_a_scale_each():
    """Products err alike on five GPUs, streams hardly on four and threefold on the fifth: the wide
    scale of the latter is none of the former's. Half-width by hand: nine tenths of 0.2."""
    count, even = 1000, np.linspace(-0.2, 0.2, 1000)
    device = np.repeat(np.arange(5), 2 * count)
    softmax = ERROR_GROUPS.index("softmax")
    group = np.tile(np.repeat([1, softmax], count), 5)
    times = np.where((group == softmax) & (device == 4), 3.0, 1.0)
    logs = _logs(np.full(10 * count, 1e-2))
    found = calibrate(logs.body + np.tile(even, 10) * times, logs, group, device)
    alone = calibrate(logs.body + np.tile(even, 10), logs, np.full(10 * count, 1), device)
    assert found.half_width[3:6] == pytest.approx(alone.half_width[3:6])
    assert found.half_width[5] == pytest.approx(0.18, abs=0.02)
    assert found.half_width[3 * softmax + 2] > 1.4 * found.half_width[5]
    assert found.covered["linear"] == pytest.approx(0.9, abs=0.03)
    assert 0.8 < found.covered["softmax"] < 1
    assert set(found.covered) == {"linear", "softmax"}


def test_one_gpu_tells_no_half_width():
    logs = _logs(np.full(50, 1e-2))
    found = calibrate(logs.body, logs, np.zeros(50, np.int64), np.zeros(50, np.int64))
    assert found.half_width == (0.7,) * CELLS
    assert not found.covered


def test_a_stated_host_scales_what_it_bounds():
    """A host half as fast: a tiny addition takes twice as long, as does a tiny ReLU; a large one
    hardly more; the interval is narrower."""
    usual, learned = find_device("t4"), toy_predictor()
    tiny, large = one("relu", "t4", batch=8, width=8), one("relu", "t4", batch=65536, width=4096)
    reference = float(np.exp(learned.params["streams"]["floor"][0][STREAMS.index("add")]))
    same, slow = (with_launch(usual, microseconds * reference) for microseconds in (1e6, 2e6))
    for inputs, times in ((tiny, 2.0), (large, 1.0)):
        before, after = (learned.interval(replace(inputs, devices=(each,)))
                         for each in (same, slow))  # fmt: skip
        assert after.seconds[0] / before.seconds[0] == pytest.approx(times, rel=0.01)
    before, after = (learned.interval(replace(tiny, devices=(d,))) for d in (usual, slow))
    assert after.high[0] / after.low[0] < before.high[0] / before.low[0]


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


def test_more_work_costs_no_less(shipped):
    """Up to a hundredth near the floor, where the choice of tile is blurred."""
    for op, size in (("linear", "rows"), ("bmm", "depth"), ("relu", "batch"), ("softmax", "batch")):
        seconds = [shipped.predict(one(op, "h100", **{size: n}))[0] for n in (64, 256, 1024)]
        assert seconds[0] < 1.01 * seconds[1], op
        assert seconds[1] < 1.01 * seconds[2], op


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
    more); no interval is wider than a factor of 14, of which 4.8
    are an unknown host's."""
    steps = np.unique(np.round(2 ** np.arange(0, 15, 0.25)).astype(np.int64))
    each = one(op, name)
    columns = {n: np.repeat(v, len(steps)) for n, v in each.rows.sizes.items()} | {size: steps}
    rows = OperatorRows(np.repeat(each.rows.op, len(steps)), columns)
    found = shipped.interval(OperatorInputs(rows, each.devices, np.zeros(len(steps), np.int64)))
    assert (found.seconds[1:] > 0.94 * found.seconds[:-1]).all()
    assert (found.high < 14 * found.low).all()


def test_large_products_reach_a_plausible_share_of_the_peak(shipped):
    for name in ("a100-80gb", "h100", "v100"):
        inputs = one("linear", name, rows=8192, depth=4096, columns=4096)
        share = inputs.rows.flops()[0] / shipped.predict(inputs)[0]
        assert 0.45 < share / find_device(name).matrix_flops < 1


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


def test_what_fits_the_cache_does_not_wait_for_memory(shipped):
    """33.6 MB on an L4 (48 MB, 300 GB/s) take less than memory would, which the interval holds,
    1 GB takes more; a T4 of 4 MB and like bandwidth waits for both."""
    small, large = 64 * 65536 * 8, 2048 * 65536 * 8
    for name, fits in (("l4", True), ("t4", False)):
        bandwidth = find_device(name).memory_bandwidth
        seconds = [shipped.predict(one("relu", name, batch=b, width=65536))[0] for b in (64, 2048)]
        assert bool(seconds[0] < small / bandwidth) is fits
        assert seconds[1] > large / bandwidth
        assert (
            shipped.interval(one("relu", name, batch=64, width=65536)).high[0] > small / bandwidth
        )


def test_convolutions_without_winograd_do_not_save(shipped):
    """A stride of 2 saves three quarters of the work, of which Winograd's would have saved half."""
    seconds = [shipped.predict(one("conv", "v100", batch=64, input_channel=256, output_channel=256,
                                   stride=stride))[0] for stride in (1, 2)]  # fmt: skip
    assert 0.25 * seconds[0] < seconds[1] < seconds[0]


def test_a_convolution_of_one_pixel_is_a_linear_layer_where_none_was_measured(shipped):
    """56² pixels of 2 images, 64 to 64 channels: on a V100 the linear layer's price."""
    inputs = one("conv", "v100", batch=2, kernel_size=1, padding=0)
    layer = one("linear", "v100", rows=2 * 56**2, depth=64, columns=64)
    assert shipped.predict(inputs) == pytest.approx(shipped.predict(layer))
    assert not shipped.interval(inputs).unlike[0]
    inputs, layer = (replace(each, devices=(find_device("h100"),)) for each in (inputs, layer))
    assert shipped.predict(inputs) != pytest.approx(shipped.predict(layer))


def test_no_convolution_of_hopper_saves_multiplications(shipped):
    """Large ones of 3 × 3 take longer than all their multiplications at the peak, which a V100's do
    not."""
    shares = []
    for name in ("v100", "h100"):
        inputs = one("conv", name, batch=64, input_channel=512, output_channel=512)
        busy = inputs.rows.flops()[0] / find_device(name).matrix_flops
        shares.append(busy / shipped.predict(inputs)[0])
    assert shares[1] < 1 < shares[0]


def test_faster_devices_are_faster(shipped):
    seconds = [shipped.predict(one("linear", name, rows=4096, depth=4096, columns=4096))[0]
               for name in ("h100", "a100-40gb", "v100", "t4", "p4")]  # fmt: skip
    assert seconds == sorted(seconds)


@pytest.mark.parametrize(
    ("op", "device", "change", "unlike"),
    [
        ("linear", "t4", {}, False),
        ("linear", "t4", {"depth": 500_000}, True),
        ("relu", "v100", {"width": 5120}, False),
        ("relu", "v100", {"width": 100_000}, True),
        ("conv", "t4", {"kernel_size": 5}, True),
        ("conv", "h100", {"kernel_size": 5}, False),
        ("linear", "h100", {}, False),
        ("linear", "mi210", {}, True),
        ("linear", "a100-80gb", {}, False),
    ],
)
def test_what_lies_outside_is_flagged(op, device, change, unlike, shipped):
    assert bool(shipped.interval(one(op, device, **change)).unlike[0]) is unlike
