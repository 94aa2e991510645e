"""An H100 beside its predictions: errors by hand, the page of made-up rows, the files that ship."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from experiments.programs.measured_gpu import (
    ALL,
    ALONE,
    IN_GRAPH,
    LEARNED_CONV,
    OTHER_CONV,
    MeasuredGpu,
    measured_pair,
    operator_rows,
    page,
)
from experiments.programs.measured_networks import NAN, NetworkRow, is_fused, network_rows
from go_rl.core import TrainingError
from go_rl.costs.devices import find_device
from go_rl.costs.operators import GPU_WEIGHTS
from go_rl.costs.operators.examples import OperatorExamples, OperatorInputs
from go_rl.costs.operators.fitting import UNKNOWN_TILE
from go_rl.costs.operators.launches.launch_replay import BETWEEN_KERNELS
from go_rl.costs.operators.measured_tables import read_measured
from go_rl.costs.operators.predictor import OperatorPredictor
from go_rl.costs.operators.tables import OperatorRows
from go_rl.costs.operators.tables.operator_rows import SIZES, sizes_of

MEASURED, NETWORKS = MeasuredGpu().measured, MeasuredGpu().networks
OPS = ("add", "add", "conv", "conv")


def _examples(seconds):
    sizes = {name: np.array([8 if name in sizes_of(op) else 0 for op in OPS]) for name in SIZES}
    sizes |= {"kernel_size": np.array([0, 0, 3, 5]), "stride": np.array([0, 0, 1, 1])}
    inputs = OperatorInputs(
        OperatorRows(np.array(OPS), sizes), (find_device("h100"),), np.zeros(4, np.int64)
    )
    return OperatorExamples(inputs, np.array(seconds), np.full(4, UNKNOWN_TILE), np.full(4, np.nan))


class _Twice:
    """A predictor that says 20 µs of everything, 5 of them the GPU's, and brackets little."""

    def interval(self, inputs):
        each = np.full(len(inputs.rows), 2e-5)
        busy = np.full(len(inputs.rows), 5e-6 - BETWEEN_KERNELS)
        return SimpleNamespace(seconds=each, low=each / 1.5, high=each * 1.5, busy=busy)


@pytest.fixture
def rows():
    alone, in_graph = _examples([1e-5, 1e-5, 2e-5, 4e-5]), _examples([5e-6, 5e-6, 1e-5, 1e-5])
    return operator_rows(alone, in_graph, cast(OperatorPredictor, _Twice()), 10.0)


def _row(rows, against, method, kind):
    return next(
        row
        for row in rows
        if (row.against, row.method, row.operators) == (against, method, kind)
    )  # fmt: skip


def test_errors_of_operators_by_hand(rows):
    added = _row(rows, ALONE, "ours", "element-wise")
    assert (added.rows, added.median, added.mean) == (2, pytest.approx(100), pytest.approx(100))
    assert added.bias == pytest.approx(100 * np.log(2))
    assert added.coverage == 0
    every = _row(rows, ALONE, "ours", ALL)
    assert (every.rows, every.mean, every.coverage) == (4, pytest.approx(62.5), 25)
    assert _row(rows, ALONE, "ours", LEARNED_CONV).mean == pytest.approx(0)
    assert _row(rows, ALONE, "ours", OTHER_CONV).mean == pytest.approx(50)
    graph = _row(rows, IN_GRAPH, "ours", ALL)
    assert (graph.median, np.isnan(graph.coverage)) == (pytest.approx(25), True)


def test_the_roofline_pays_for_a_launch_between_events(rows):
    """Eight additions of eight: nothing but the launch of 26 µs, or the 10 µs of this host."""
    assert _row(rows, ALONE, "roofline", "element-wise").mean == pytest.approx(160, abs=0.1)
    assert _row(rows, ALONE, "roofline, host told", "element-wise").mean == pytest.approx(
        0, abs=0.1
    )
    assert _row(rows, IN_GRAPH, "roofline", "element-wise").mean == pytest.approx(100, abs=0.1)


def test_the_page_from_made_up_rows(rows):
    facts = {"gpu": "NVIDIA H100", "torch": "2", "cuda": "13", "cudnn": 9}
    networks = [
        NetworkRow("tiny", 7, 4.0, 2.0, 6.0, 3.0, 9.0, 5.0, 1.0, 4.5, ""),
        NetworkRow("odd", 0, 4.0, 2.0, NAN, NAN, NAN, NAN, NAN, NAN, "it has no shapes"),
    ]
    text = page(rows, networks, facts, GPU_WEIGHTS, 13.4)
    assert "| tiny | 7 | 4 | 6 (3 to 9) | +50% | 5 | +25% | 2 | 1 | -50% | 4.5 |" in text
    assert "Eager latencies within the 90 % interval: 1 of 1." in text
    assert "- `odd` is not predicted: it has no shapes" in text
    assert "| all | 4 | " in text


def test_the_measurements_that_ship_are_read():
    alone, in_graph = measured_pair(MEASURED)
    assert len(alone.seconds) == len(in_graph.seconds) == 2_883
    assert [sheet.name for sheet in alone.inputs.devices] == ["h100"]
    assert set(alone.inputs.rows.op.tolist()) == {
        path.name.partition(".")[0] for path in (MEASURED / "operators").iterdir()
    }
    products = alone.inputs.rows.is_any(("bmm", "linear"))
    reached = alone.inputs.rows.flops()[products] / in_graph.seconds[products]
    assert 0.6 < reached.max() / alone.inputs.devices[0].matrix_flops < 1
    assert np.median(in_graph.seconds / alone.seconds) < 0.6


def test_each_measured_network_is_there_and_read():
    document = json.loads((MEASURED / "networks.json").read_text())
    names = {row["network"] for row in document["rows"]}
    packed = {path.name.partition(".")[0] for path in NETWORKS.iterdir()}
    assert packed == {name for name in names if not is_fused(name)}
    assert (len(packed), len(names)) == (15, 21)
    own = [row for row in document["rows"] if row["network"] == "vgg16-b16"]
    learned = OperatorPredictor.load(GPU_WEIGHTS)
    found = network_rows(NETWORKS, own, learned, find_device("h100"), 20.7)
    assert [(row.network, row.launches, row.problem) for row in found] == [("vgg16-b16", 37, "")]
    assert found[0].gpu_ms < found[0].predicted_ms
    absent = network_rows(MEASURED, own, learned, find_device("h100"), 20.7)[0]
    assert "No such file" in absent.problem


def test_folders_are_joined_and_graphs_are_told_apart(tmp_path):
    for folder, device, head, graph in (
        ("one", "t4", "", ""),
        ("two", "h200", "graph_ms,", "0.01,"),
    ):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "relu.csv").write_text(
            f"latency_ms,{head}device,batch,width\n0.02,{graph}{device},4,8\n"
        )
    both = read_measured(tmp_path / "one", tmp_path / "two")
    assert [both.inputs.devices[each].name for each in both.inputs.device] == ["t4", "h200"]
    assert both.seconds.tolist() == [2e-5, 2e-5]
    assert np.isnan(both.in_graph[0])
    assert both.in_graph[1] == 1e-5
    wrong = tmp_path / "two" / "relu.csv"
    wrong.write_text("latency_ms,graph_ms,device,batch,width\n0.02,0,t4,4,8\n")
    with pytest.raises(TrainingError, match="graph_ms must be positive"):
        read_measured(tmp_path / "two")
