"""An `If` is the branch that fits, of two the dearer one; inputs of one element can be given."""

from __future__ import annotations

import json

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx_models import array, model, value

import go_rl
from go_rl.core.errors import ReadError, UnknownOperatorError
from go_rl.graphs.readers import load
from go_rl.graphs.readers.model_options import ModelOptions
from go_rl.graphs.readers.onnx.reader import read_onnx_model

node = helper.make_node


pytestmark = pytest.mark.usefixtures("in_process")


def branch(name, nodes, result, weights=()):
    return helper.make_graph(nodes, name, [], [onnx.ValueInfoProto(name=result)], list(weights))


def two_rates():
    """Of samples at 16 kHz a row has 576, at 8 kHz 288."""
    branches = [
        branch(
            n,
            [node("MatMul", ["x", f"w{n}"], [f"r{n}"])],
            f"r{n}",
            [array(f"w{n}", np.ones((width, 1)))],
        )
        for n, width in (("a", 576), ("b", 288))
    ]
    nodes = [
        node("Equal", ["rate", "k16"], ["c"]),
        node("If", ["c"], ["y"], then_branch=branches[0], else_branch=branches[1], name="if"),
    ]
    inputs = [value("x", ["batch", "samples"]), value("rate", [], TensorProto.INT64)]
    return model(nodes, inputs, ["y"], [array("k16", 16000, np.int64)])


@pytest.mark.parametrize(("samples", "flops"), [(576, 1152), (288, 576)])
def test_the_branch_that_fits_the_sizes_is_counted(samples, flops):
    graph = read_onnx_model(two_rates(), "m", {"batch": 1, "samples": samples})
    assert graph.flops[list(graph.op_type).index("MatMul")] == flops
    (note,) = graph.meta["notes"]
    assert "cannot be at these sizes (" in note


def test_no_branch_fits():
    with pytest.raises(ReadError, match=r"neither branch fits: then_branch: .*; else_branch: "):
        read_onnx_model(two_rates(), "m", {"batch": 1, "samples": 100})


@pytest.fixture(scope="module")
def rates(tmp_path_factory):
    path = tmp_path_factory.mktemp("rates") / "rates.onnx"
    onnx.save(two_rates(), path)
    return path


@pytest.mark.parametrize("rate", [16000, (16000,)])
def test_a_scalar_input_can_be_given_its_value(rates, rate):
    graph = load(rates, inputs={"x": (1, 576), "rate": rate})
    assert list(graph.op_type) == ["Input", "MatMul"]
    assert graph.flops.sum() == 1152
    assert not graph.meta["notes"]
    assert graph.meta["dims"] == {"batch": 1, "samples": 576, "rate.value": 16000}
    again = load(rates, graph.meta["dims"])
    assert again.names == graph.names
    assert again.flops.tolist() == graph.flops.tolist()


def test_a_value_that_takes_the_branch_that_does_not_fit(rates):
    with pytest.raises(ReadError, match="MatMul"):
        load(rates, inputs={"x": (1, 576), "rate": 8000})


def test_a_plan_of_a_model_with_a_value_is_checked_again(rates, tmp_path):
    plan = go_rl.optimize(rates, seconds=0.1, inputs={"x": (1, 576), "rate": 16000}, seed=0).best
    plan.save(tmp_path / "plan.json")
    assert json.loads((tmp_path / "plan.json").read_text())["dims"]["rate.value"] == 16000
    assert go_rl.check(tmp_path / "plan.json", rates).ok


def flagged(element, shape):
    one = branch("one", [node("Relu", ["x"], ["p"])], "p")
    two = branch("two", [node("Relu", ["x"], ["q"]), node("Neg", ["q"], ["r"])], "r")
    nodes = [
        *(
            [node("Reshape", ["flag", "none"], ["f"])]
            if shape
            else [node("Identity", ["flag"], ["f"])]
        ),
        node("Cast", ["f"], ["c"], to=TensorProto.BOOL),
        node("If", ["c"], ["y"], then_branch=one, else_branch=two),
    ]
    inputs = [value("x", [4]), value("flag", shape, element)]
    return model(nodes, inputs, ["y"], [array("none", [], np.int64)])


@pytest.mark.parametrize("element", [TensorProto.BOOL, TensorProto.FLOAT, TensorProto.INT32])
@pytest.mark.parametrize("shape", [[], [1]])
@pytest.mark.parametrize(("given", "flops"), [(0, 8), (1, 4)])
def test_a_flag_decides_a_branch(element, shape, given, flops, tmp_path):
    onnx.save(flagged(element, shape), tmp_path / "m.onnx")
    assert load(tmp_path / "m.onnx", inputs={"flag": bool(given)}).flops.sum() == flops
    assert load(tmp_path / "m.onnx", {"flag.value": given}).flops.sum() == flops


def test_values_that_cannot_be(tmp_path):
    onnx.save(flagged(TensorProto.BOOL, []), tmp_path / "m.onnx")
    with pytest.raises(ReadError, match="input 'flag' of type bool cannot hold 2"):
        load(tmp_path / "m.onnx", inputs={"flag": 2})
    with pytest.raises(ReadError, match="input 'x', which does not have exactly one element"):
        load(tmp_path / "m.onnx", inputs={"x": 2})
    with pytest.raises(ReadError, match="the value of 'flag' must be at least 0"):
        load(tmp_path / "m.onnx", inputs={"flag": -1})
    with pytest.raises(ReadError, match="whole number as its value, such as"):
        ModelOptions.of(inputs={"flag": 0.5})


def test_one_choice_for_sizes_and_work():
    """The result of the branch that is counted is what follows it reads."""
    big = branch("big", [node("MatMul", ["x", "w"], ["b"])], "b")
    small = branch("small", [node("ReduceSum", ["x", "ax"], ["s"], keepdims=1)], "s")
    weights = [array("w", np.ones((64, 64))), array("ax", [0], np.int64)]
    for branches in ((big, small), (small, big)):
        nodes = [
            node("If", ["c"], ["y"], then_branch=branches[0], else_branch=branches[1]),
            node("MatMul", ["y", "w"], ["z"]),
        ]
        inputs = [value("c", [], TensorProto.BOOL), value("x", [100, 64])]
        graph = read_onnx_model(model(nodes, inputs, ["z"], weights), "m")
        assert graph.flops.tolist() == [0, 0, 819_200, 819_200]
        assert list(graph.output_shape[-1]) == [100, 64]


def test_what_only_a_branch_not_taken_reads_is_not_counted():
    then = branch("t", [node("Relu", ["x"], ["p"])], "p")
    other = branch("e", [node("Neg", ["costly"], ["q"])], "q")
    nodes = [
        node("Exp", ["x"], ["costly"]),
        node("If", ["c"], ["y"], then_branch=then, else_branch=other),
    ]
    weights = [array("c", True, np.bool_)]
    graph = read_onnx_model(model(nodes, [value("x", [4])], ["y"], weights), "m")
    assert list(graph.op_type) == ["Input", "Relu"]


def test_an_operator_without_a_price_in_a_branch_that_is_not_taken():
    then = branch("t", [node("Relu", ["x"], ["p"])], "p")
    other = branch("e", [node("Strange", ["x"], ["q"], domain="own")], "q")
    nodes = [node("If", ["c"], ["y"], then_branch=then, else_branch=other)]
    for taken in (True, False):
        weights = [array("c", taken, np.bool_)]
        made = model(nodes, [value("x", [4])], ["y"], weights, domains=["own"])
        if taken:
            assert read_onnx_model(made, "m").flops.sum() == 4
            continue
        with pytest.raises(UnknownOperatorError, match=r"own.Strange \(1\); count them by their"):
            read_onnx_model(made, "m")
