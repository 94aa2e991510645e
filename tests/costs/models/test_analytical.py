"""Analytical prices, of nodes and of stages."""

import json
from dataclasses import replace
from importlib.resources import files

import numpy as np
import pytest
from small_graphs import graph_of

import go_rl
from experiments.kernels.kernel_cost_model import calibrate
from go_rl.core import Device, HardwareError, OpKind, ProblemError, RecordError
from go_rl.core.hardware.presets import EXAMPLES, load_hardware
from go_rl.costs.devices import device_names
from go_rl.costs.models import Analytical, CostModel, Efficiency, Kernels, shipped_parameters
from go_rl.costs.models.stage_prices import stage_factors
from go_rl.costs.models.stage_times import StageTimes, append_times, read_times
from go_rl.graphs.readers.graph_builder import Node

CHIP = Device("tile", peak_flops=1e12, memory_bytes=1e9, memory_bandwidth=1e11, host_bandwidth=1e10)
EVEN = Analytical({"tile": Efficiency(0.5, 0.25, 0.1, 0.2, 0.05, 0.8)})


def kernels(kinds: list[OpKind], flops, accessed, streamed=0.0) -> Kernels:
    size = len(kinds)
    return Kernels(
        graph=graph_of(Node(i, "Op", kind) for i, kind in enumerate(kinds)),
        kind=np.array(kinds, np.int8),
        flops=np.broadcast_to(np.array(flops, np.float64), size).copy(),
        bytes_accessed=np.broadcast_to(np.array(accessed, np.float64), size).copy(),
        streamed_bytes=np.broadcast_to(np.array(streamed, np.float64), size).copy(),
    )


def test_each_kind_reaches_its_own_share_of_the_peak():
    """1 GFLOP at 1 TFLOP/s is 1 ms at full rate."""
    kinds = [OpKind.MATMUL, OpKind.CONVOLUTION, OpKind.ELEMENTWISE, OpKind.REDUCTION]
    others = [OpKind.MOVEMENT, OpKind.GATHER, OpKind.CONTROL, OpKind.OTHER]
    seconds = EVEN.seconds(kernels(kinds + others, 1e9, 0.0), CHIP)
    assert seconds.tolist() == pytest.approx([2e-3, 4e-3, 10e-3, 5e-3] + [20e-3] * 4)


def test_the_slowest_of_compute_memory_and_host_counts():
    """2 ms of arithmetic; 0.4 GB at 80 GB/s is 5 ms; 0.1 GB from the host at 10 GB/s is 10 ms."""
    matmul = [OpKind.MATMUL] * 3
    seconds = EVEN.seconds(kernels(matmul, 1e9, [0.0, 4e8, 4e8], [0.0, 0.0, 1e8]), CHIP)
    assert seconds.tolist() == pytest.approx([2e-3, 5e-3, 10e-3])


def test_launch_is_added_and_free_kinds_cost_nothing():
    device = replace(CHIP, launch_seconds=1e-3)
    kinds = [OpKind.INPUT, OpKind.CONSTANT, OpKind.OTHER, OpKind.MATMUL]
    seconds = EVEN.seconds(kernels(kinds, [0.0, 0.0, 0.0, 1e9], 0.0), device)
    assert seconds.tolist() == pytest.approx([0.0, 0.0, 1e-3, 3e-3])


def test_an_unknown_chip_gets_the_default_shares():
    work = kernels([OpKind.MATMUL], 1e9, 0.0)
    assert EVEN.seconds(work, replace(CHIP, kind="new"))[0] == pytest.approx(1e-3 / 0.7)


def test_shipped_parameters_are_valid_and_cover_the_presets():
    text = files("go_rl.costs.models").joinpath("parameters.json").read_text()
    shipped = shipped_parameters()
    assert set(shipped) == set(json.loads(text))
    kinds = {c.kind for name in EXAMPLES for c in load_hardware(name).devices}
    # GPUs of the table of devices are known by their data sheets; the default shares serve them.
    assert kinds - set(shipped) <= set(device_names())
    assert isinstance(Analytical(), CostModel)
    assert Analytical().name == "analytical"


@pytest.mark.parametrize("share", [0.0, -0.1, 1.5, float("nan")])
def test_a_share_outside_zero_to_one_is_refused(share):
    with pytest.raises(HardwareError, match=r"efficiency matmul must lie in \(0, 1\]"):
        Efficiency(matmul=share)


def test_calibration_recovers_known_shares():
    rng = np.random.default_rng(0)
    kinds = [OpKind.MATMUL, OpKind.CONVOLUTION, OpKind.ELEMENTWISE, OpKind.REDUCTION, OpKind.OTHER]
    kinds = kinds * 12
    flops = 10 ** rng.uniform(8, 10, 60)
    accessed = np.where(np.arange(60) % 4 == 0, 5e9, 1.0)
    work = kernels(kinds, flops, accessed)
    truth = Efficiency(0.4, 0.3, 0.05, 0.2, 0.02, 0.5)
    measured = Analytical({"tile": truth}).seconds(work, CHIP)
    found = Analytical({"tile": calibrate(work, CHIP, measured, rounds=8)}).seconds(work, CHIP)
    error = np.abs(np.log(found / measured))
    assert np.median(error) < 0.05
    assert error.max() < 0.2


@pytest.mark.parametrize(
    ("measured", "message"),
    [([1.0], "1 times for 2 kernels"), ([1.0, 0.0], "every measured time"),
     ([1.0, np.nan], "every measured time")],
)  # fmt: skip
def test_calibration_refuses_bad_times(measured, message):
    work = kernels([OpKind.MATMUL] * 2, 1e9, 0.0)
    with pytest.raises(HardwareError, match=message):
        calibrate(work, CHIP, np.array(measured))


HARDWARE = "cpu-1-ring2"


def _run(nodes, seconds, graph_hash="g", target="cpu-1"):
    return StageTimes(graph_hash, target, "a processor", "jax", nodes, seconds)


@pytest.mark.slow
def test_the_prices_of_a_plan_come_out_as_measured(tmp_path):
    graph = go_rl.load("zoo:bert-tiny")
    first = go_rl.optimize(graph, hardware=HARDWARE, method="greedy").best
    parts = tuple(tuple(np.flatnonzero(first.device == d).tolist()) for d in (0, 1))
    times = _run(parts, (0.02, 0.01), first.graph_hash)
    append_times(tmp_path / "runs.jsonl", times)
    assert read_times(tmp_path / "runs.jsonl") == [times]
    cost = f"stages:{tmp_path / 'runs.jsonl'}"
    result = go_rl.optimize(graph, hardware=HARDWARE, method="greedy", cost=cost)
    assert 0.0145 < result.best.value < 0.0195
    assert go_rl.check(result.best, graph).ok
    assert any("corrected by 2 stages of 1 run on a processor" in note
               for note in result.problem.notes)  # fmt: skip
    fused = go_rl.optimize(graph, hardware="cpu-1x2", method="composed", samples=4, cost=cost).best
    assert fused.value < 0.03
    with pytest.raises(ProblemError, match=r"no stages of .* have run on devices of kind"):
        go_rl.optimize("zoo:resnet18", hardware=HARDWARE, cost=cost)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{", "line 1: is no run of stages"),
        ('{"format": "x"}', "format 'x'"),
        (None, "a device without nodes or seconds > 0"),
    ],
)
def test_a_damaged_file_is_named_with_its_line(tmp_path, line, words):
    file = tmp_path / "runs.jsonl"
    append_times(file, _run(((0,),), (1.0,)))
    broken = json.loads(file.read_text()) | {"seconds": [0.0]}
    file.write_text(json.dumps(broken) if line is None else line)
    with pytest.raises(RecordError, match=words):
        read_times(file)
    with pytest.raises(RecordError, match="no such file; go-rl run FOLDER --record"):
        go_rl.optimize("zoo:bert-tiny", hardware=HARDWARE, cost=f"stages:{tmp_path / 'none'}")


def test_what_always_ran_together_keeps_its_proportions():
    priced = np.array([1.0, 2.0, 3.0, 0.0])
    runs = [_run(((0, 1), (2, 3)), (6.0, 9.0))]
    assert stage_factors(priced, ["a", "b", "c", "d"], runs)[:3] * priced[:3] == pytest.approx(
        [2.0, 4.0, 9.0], rel=0.1
    )


def test_what_was_cut_apart_is_learned_apart():
    rng = np.random.default_rng(0)
    true = rng.uniform(1, 10, 12)
    priced = true * np.exp(rng.normal(0, 0.4, 12))
    types = [str(i % 3) for i in range(12)]
    cuts = [_run((tuple(range(c)), tuple(range(c, 12))), (true[:c].sum(), true[c:].sum()))
            for c in range(2, 11)]  # fmt: skip
    found = priced * stage_factors(priced, types, cuts)
    sums = [found[:c].sum() for c in range(2, 11)]
    assert sums == pytest.approx([true[:c].sum() for c in range(2, 11)], rel=0.03)
    assert (
        np.abs(np.log(found[2:10] / true[2:10])).mean()
        < np.abs(np.log(priced[2:10] / true[2:10])).mean()
    )
