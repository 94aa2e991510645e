"""Node data over the user's own ONNX file in Model Explorer."""

import json

import onnx
import pytest
from onnx import TensorProto, helper

import go_rl
from go_rl.core import SplitError


def _value(name, element=TensorProto.FLOAT, shape=(4,)):
    return helper.make_tensor_value_info(name, element, list(shape))


def _branch(letter):
    inner = [
        helper.make_node("Relu", ["a"], [f"{letter}1"], name="dup"),
        helper.make_node("Neg", [f"{letter}1"], [f"{letter}2"], name="dup"),
    ]
    return helper.make_graph(inner, letter, [], [_value(f"{letter}2")])


@pytest.fixture
def model(tmp_path):
    """Nodes without a name, with one twice, and with subgraphs."""
    nodes = [
        helper.make_node("Relu", ["x"], ["a"]),
        helper.make_node("Relu", ["a"], ["b"], name="dup"),
        helper.make_node("Neg", ["b"], ["c"], name="dup"),
        helper.make_node("Neg", ["c"], ["d"]),
        helper.make_node("If", ["on"], ["f"], name="if", then_branch=_branch("t"),
                         else_branch=_branch("e")),
        helper.make_node("Add", ["d", "f"], ["g"], name="dup"),
        helper.make_node("Relu", ["g"], ["y"]),
    ]  # fmt: skip
    inputs = [_value("x"), _value("on", TensorProto.BOOL, ())]
    graph = helper.make_graph(nodes, "inside", inputs, [_value("y")])
    path = tmp_path / "outside.onnx"
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path
    )
    return path


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
