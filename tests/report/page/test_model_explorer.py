"""What a page shows of a graph: layout, slack, Model Explorer."""

import json
from itertools import combinations

import numpy as np
import onnx
import pytest
from graphs.readers.onnx_models import parsed
from page_parts import named_graph, planned, problem_on, zoo_plan
from small_graphs import graph_of

import go_rl
from go_rl.core import Objective, OpKind, SplitError, Status
from go_rl.graphs.readers.graph_builder import Node
from go_rl.graphs.zoo import zoo_graph
from go_rl.objectives.makespan.simulate.timeline import MemoryUse, Slice, Timeline, Track
from go_rl.report.page.nested_layout import OPERATOR, nested_layout
from go_rl.report.page.scopes import scope_tree
from go_rl.report.page.timetable import slack_of
from go_rl.report.timeline.plan_timeline import plan_timeline


@pytest.mark.parametrize("name", ["bert-tiny", "resnet18", "dlrm-kaggle"])
def test_boxes_lie_inside_their_block_and_beside_each_other(name):
    graph = zoo_graph(name)
    tree = scope_tree(graph)
    box = nested_layout(graph, tree).box
    for block, held in enumerate(tree.children):
        x, y, w, h = box[graph.num_nodes + block]
        inner = box[list(held)]
        assert (inner[:, 0] >= x).all()
        assert (inner[:, 1] >= y).all()
        assert (inner[:, 0] + inner[:, 2] <= x + w + 1e-6).all()
        assert (inner[:, 1] + inner[:, 3] <= y + h + 1e-6).all()
        for a, b in combinations(inner, 2):
            apart = (a[:2] + a[2:] <= b[:2]) | (b[:2] + b[2:] <= a[:2])
            assert apart.any()
    assert (box[: graph.num_nodes, 2:] == OPERATOR).all()


def test_lines_join_what_shares_a_block():
    names = ("a/x", "a/y", "b/z", "end")
    nodes = (Node(name, "Op", OpKind.OTHER, output_bytes=8.0) for name in names)
    graph = graph_of(nodes, [(0, 1, 1.0), (0, 2, 2.0), (1, 2, 4.0), (2, 3, 8.0)], "lines")
    tree = scope_tree(graph)
    assert tree.names == ("lines", "a", "b")
    layout = nested_layout(graph, tree)
    a, b = 5, 6  # after the four operators and the root
    found = dict(zip(map(tuple, layout.line.tolist()), layout.line_bytes.tolist(), strict=True))
    assert found == {(0, 1): 1.0, (a, b): 6.0, (b, 3): 8.0}


def test_by_hand():
    """a (1 s) on device 0 is sent in 1 s to c (2 s) on device 1; b (1 s) runs there before, and d
    (1 s) on device 0 whenever."""
    problem = problem_on(named_graph("a", "b", "c", "d"), "p100x2", Objective.MAKESPAN)
    plan = planned(problem, [0, 1, 1, 0])
    tracks = (Track(0, "stream"), Track(1, "stream"), Track(0, "0 → 1", 1))

    def piece(name: str, start: float, seconds: float, track: int, kind: str = "other") -> Slice:
        return Slice(name, start, seconds, track, {"kind": kind, "nodes": [name]})

    slices = (
        piece("a", 0.0, 1.0, 0), piece("b", 0.0, 1.0, 1), piece("a", 1.0, 1.0, 2, "transfer"),
        piece("d", 1.0, 1.0, 0), piece("c", 2.0, 2.0, 1),
    )  # fmt: skip
    memory = MemoryUse(np.zeros(1), np.zeros(1))
    timeline = Timeline("net", "toys", Status.OK, 4.0, ("toy",) * 2, tracks, slices,
                        ((0, 2), (2, 4)), (memory,) * 2, np.zeros(2))  # fmt: skip
    assert slack_of(problem, plan, timeline) == pytest.approx([0.0, 1.0, 0.0, 2.0])


def test_some_operator_of_a_replayed_plan_has_none():
    problem, plan = zoo_plan("resnet18", "p100x4", Objective.MAKESPAN)
    slack = slack_of(problem, plan, plan_timeline(problem, plan))
    runs = ~problem.graph.is_fed
    assert np.nanmin(slack[runs]) == pytest.approx(0.0, abs=1e-12)
    assert np.nanmax(slack) <= plan.value
    assert np.isnan(slack[problem.graph.is_fed]).all()


@pytest.fixture
def model(tmp_path):
    """Nodes without a name, with one twice, and with subgraphs."""
    branch = "{0} () => (float[4] {0}2) {{ [dup] {0}1 = Relu(a) [dup] {0}2 = Neg({0}1) }}"
    made = parsed(
        f"""(float[4] x, bool on) => (float[4] y) {{
            a = Relu(x) [dup] b = Relu(a) [dup] c = Neg(b) d = Neg(c)
            [if] f = If <then_branch = {branch.format("t")},
                         else_branch = {branch.format("e")}> (on)
            [dup] g = Add(d, f) y = Relu(g) }}"""
    )
    made.graph.name = "inside"
    onnx.save(made, tmp_path / "outside.onnx")
    return tmp_path / "outside.onnx"


IDS = ["node", "dup", "dup_1", "node_1", "if", "dup_4", "node_2"]


def test_the_adapter_itself_has_these_names(model):
    adapter = pytest.importorskip("model_explorer_onnx.main").ONNXAdapter()
    graph = adapter.convert(str(model), {})["graphs"][0]
    assert graph.id == "inside"
    assert set(IDS) <= {node.id for node in graph.nodes}


@pytest.mark.slow
def test_node_data_are_for_both_graphs(model, tmp_path):
    result = go_rl.optimize(model, hardware="p100x2", decide="placement", samples=2,
                            method="default")  # fmt: skip
    plan = tmp_path / "plan.json"
    result.best.save(plan)
    go_rl.view(plan, tmp_path / "page.html", model, model_explorer=tmp_path / "graph.json")
    data = json.loads((tmp_path / "graph.device.json").read_text())
    assert set(data) == {"outside", "inside"}
    assert {"node", "dup", "dup_1", "dup_4", "node_1"} <= set(data["inside"]["results"])
    shown = {node["id"] for node in
             json.loads((tmp_path / "graph.json").read_text())["graphs"][0]["nodes"]}  # fmt: skip
    assert set(data["outside"]["results"]) == shown
    one = data["inside"]["results"]["node"]
    assert one["value"] in ("device 0", "device 1")
    assert one["bgColor"].startswith("#")
    other = onnx.load(model)
    other.graph.node[0].op_type = "Tanh"
    onnx.save(other, tmp_path / "other.onnx")
    with pytest.raises(SplitError, match="is of another model: its operator 0 is Tanh"):
        go_rl.view(result, tmp_path / "p.html", model_explorer=tmp_path / "g.json",
                   onnx=tmp_path / "other.onnx")  # fmt: skip
