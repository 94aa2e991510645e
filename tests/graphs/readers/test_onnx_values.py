"""Values that shapes are computed from: by the file's operator set, and why one is not known."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx_models import array, header, model, value

from go_rl.core.errors import ReadError
from go_rl.graphs.readers import load
from go_rl.graphs.readers.onnx.fold import FOLDABLE, evaluate
from go_rl.graphs.readers.onnx.reader import read_onnx_model

node = helper.make_node


def integers(name, *numbers):
    return array(name, list(numbers), np.int64)


def shape_arithmetic(opset):
    """A reshape to [batch, -1] as exporters write it."""
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Gather", ["s", "zero"], ["d"], axis=0),
        node("Unsqueeze", ["d"], ["u"], axes=[0])
        if opset < 13
        else node("Unsqueeze", ["d", "axes"], ["u"]),
        node("Concat", ["u", "rest"], ["t"], axis=0),
        node("Reshape", ["x", "t"], ["y"]),
        node("Relu", ["y"], ["z"]),
    ]
    weights = [array("zero", 0, np.int64), integers("rest", -1), integers("axes", 0)]
    return model(nodes, [value("x", ["batch", 3, 4])], ["z"], weights, opset=opset)


@pytest.mark.parametrize("opset", [9, 11, 12, 13, 21])
def test_shape_arithmetic_of_every_operator_set(opset, in_process):
    graph = read_onnx_model(shape_arithmetic(opset), "m", {"batch": 2})
    assert list(graph.output_shape[-1][:2]) == [2, 12]
    assert graph.flops.sum() == 24


def ints(*numbers):
    return np.array(numbers, np.int64)


def floats(*numbers):
    return np.array(numbers, np.float32)


@pytest.mark.parametrize(
    ("op", "opset", "operands", "attributes", "right"),
    [
        ("Unsqueeze", 1, [np.array(3)], {"axes": [0]}, [3]),
        ("Unsqueeze", 13, [np.array(3), ints(0)], {}, [3]),
        ("Squeeze", 12, [ints(3)], {"axes": [0]}, 3),
        ("Squeeze", 13, [ints(3), ints(0)], {}, 3),
        ("Clip", 6, [floats(-1, 9)], {"min": 0.0, "max": 4.0}, [0, 4]),
        ("Clip", 11, [floats(-1, 9), np.array(0, np.float32), np.array(4, np.float32)], {}, [0, 4]),
        ("Slice", 1, [ints(5, 6, 7)], {"starts": [1], "ends": [3]}, [6, 7]),
        ("Slice", 10, [ints(5, 6, 7), ints(1), ints(3)], {}, [6, 7]),
        ("ReduceSum", 11, [ints(5, 6)], {"axes": [0], "keepdims": 0}, 11),
        ("ReduceSum", 13, [ints(5, 6), ints(0)], {"keepdims": 0}, 11),
        ("ReduceMax", 12, [ints(5, 6)], {"axes": [0], "keepdims": 0}, 6),
        ("ReduceProd", 18, [ints(5, 6), ints(0)], {"keepdims": 0}, 30),
    ],
)
def test_an_operator_is_evaluated_by_the_file_s_operator_set(
    op, opset, operands, attributes, right
):
    names = [f"x{i}" for i in range(len(operands))]
    found = evaluate(node(op, names, ["y"], **attributes), operands, {"": opset})
    assert not isinstance(found, str), found
    np.testing.assert_array_equal(found[0], right)


@pytest.mark.parametrize("opset", [9, 10, 13])
def test_results_of_top_k_that_nobody_reads(opset, in_process):
    k = {} if opset > 9 else {"k": 5}
    operands = ["x", "k"] if opset > 9 else ["x"]
    for read in ("values", "indices"):
        nodes = [node("TopK", operands, ["values", "indices"], **k), node("Neg", [read], ["y"])]
        graph = read_onnx_model(
            model(nodes, [value("x", ["n", 50])], ["y"], [integers("k", 5)], opset=opset),
            "m",
            {"n": 3},
        )
        assert graph.output_shape.tolist() == [[3, 50], [3, 5], [3, 5]]
        assert graph.output_bytes[1] == 3 * 5 * (4 + 8)


def test_results_of_dynamic_quantisation_that_nobody_reads(in_process):
    nodes = [
        node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
        node("Cast", ["q"], ["y"], to=1),
    ]
    graph = read_onnx_model(model(nodes, [value("x", ["n", 8])], ["y"]), "m", {"n": 2})
    assert graph.output_bytes.tolist() == [64, 16 + 4 + 1, 64]


def test_every_operator_of_shape_arithmetic_is_known_to_onnx():
    for op in FOLDABLE:
        onnx.defs.get_schema(op, 21, "")


REFUSALS = {
    "an input": (
        [node("Reshape", ["x", "t"], ["y"], name="r")],
        [value("x", [2, 6]), value("t", [2], TensorProto.INT64)],
        [],
        r"Reshape 'r' .*: the value of operand 1, 't', is not known: it follows from the values of "
        r"input 't', which are not given; guess",
    ),
    "an input of one element": (
        [node("Expand", ["x", "t"], ["y"])], [value("x", [1]), value("t", [1], TensorProto.INT64)],
        [], r"input 't', which are not given; give it with --dim 't.value=<value>', or guess",
    ),
    "an operator that raises": (
        [node("Gather", ["a", "b"], ["t"], name="g"), node("Reshape", ["x", "t"], ["y"])],
        [value("x", [2, 6])], [integers("a", 3), integers("b", 4)],
        r"operand 1, 't', is not known: Gather 'g' \(graph.node\[0\]\) cannot be evaluated \(Ind",
    ),
    "an operator that is not evaluated": (
        [node("Selu", ["a"], ["f"], name="s"), node("Resize", ["x", "", "f"], ["y"])],
        [value("x", [2, 6])], [array("a", [1.0, 2.0])],
        r"operand 2, 'f', is not known: Selu 's' \(graph.node\[0\]\) is none of the operators that",
    ),
    "a weight without data": (
        [node("Reshape", ["x", "t"], ["y"])], [value("x", [2, 6])],
        [header("t", [2], TensorProto.INT64)],
        r"operand 1, 't', is not known: 't' is in the file without its data",
    ),
}  # fmt: skip


@pytest.mark.parametrize("why", REFUSALS)
def test_a_refusal_says_what_is_known_to_fail(why, in_process):
    nodes, inputs, weights, message = REFUSALS[why]
    with pytest.raises(ReadError, match=message) as refused:
        read_onnx_model(model(nodes, inputs, ["y"], weights), "m")
    assert "depends on data" not in str(refused.value)


@pytest.mark.parametrize("place", ["initializer", "Constant", "branch"])
def test_data_outside_of_the_file(place, tmp_path, in_process):
    shape = array("t", [6, 4], np.int64)
    held = [node("Constant", [], ["t"], value=shape)] if place == "Constant" else []
    reshape = [*held, node("Reshape", ["x", "t"], ["y"])]
    weights = [shape] if place != "Constant" else []
    if place == "branch":
        branch = helper.make_graph(reshape, "b", [], [onnx.ValueInfoProto(name="y")], weights)
        other = helper.make_graph(
            [node("Identity", ["x"], ["z"])], "o", [], [onnx.ValueInfoProto(name="z")]
        )
        reshape = [node("If", ["c"], ["y"], then_branch=branch, else_branch=other)]
        weights = [array("c", True, np.bool_)]
    made = model([*reshape, node("Relu", ["y"], ["r"])], [value("x", [2, 3, 4])], ["r"], weights)
    onnx.save(
        made,
        tmp_path / "m.onnx",
        save_as_external_data=True,
        location="m.bin",
        size_threshold=0,
        convert_attribute=True,
    )
    read = load(tmp_path / "m.onnx").output_shape[-1]
    assert list(read[:2]) == [6, 4]
    (tmp_path / "m.bin").unlink()
    missing = "is stored outside of the model, in 'm.bin', which cannot be read"
    if place == "branch":  # the condition is in that file, too, and the other branch can be read
        notes = load(tmp_path / "m.onnx").meta["notes"]
        assert missing in notes[0]
        assert "else_branch is counted" in notes[0]
        return
    with pytest.raises(ReadError, match=missing):
        load(tmp_path / "m.onnx")
