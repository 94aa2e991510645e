"""Values that shapes are computed from: by the file's operator set, and why one is not known."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx_models import array, header, model, read, shape_of, value

from go_rl.core.errors import ReadError
from go_rl.graphs.readers import load
from go_rl.graphs.readers.onnx.fold import evaluate

node = helper.make_node


@pytest.mark.parametrize("opset", [9, 11, 12, 13, 21])
def test_shape_arithmetic_of_every_operator_set(opset, in_process):
    """A reshape to [batch, -1] as exporters write it."""
    unsqueezed = "Unsqueeze<axes = [0]>(d)" if opset < 13 else "Unsqueeze(d, axes)"
    graph = read(
        f"""(float[batch,3,4] x) => (z) <int64 zero = {{0}}, int64[1] rest = {{-1}},
        int64[1] axes = {{0}}> {{ s = Shape(x) d = Gather<axis = 0>(s, zero) u = {unsqueezed}
        t = Concat<axis = 0>(u, rest) y = Reshape(x, t) z = Relu(y) }}""",
        opset=opset,
        batch=2,
    )
    assert shape_of(graph, graph.num_nodes - 1) == [2, 12]
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


REFUSALS = {
    "an input": (
        "(float[2,6] x, int64[2] t) => (y) { [r] y = Reshape(x, t) }",
        r"Reshape 'r' .*: the value of operand 1, 't', is not known: it follows from the values of "
        r"input 't', which are not given; guess",
    ),
    "an input of one element": (
        "(float[1] x, int64[1] t) => (y) { y = Expand(x, t) }",
        r"input 't', which are not given; give it with --dim 't.value=<value>', or guess",
    ),
    "an operator that raises": (
        "(float[2,6] x) => (y) <int64[1] a = {3}, int64[1] b = {4}> { [g] t = Gather(a, b) "
        "y = Reshape(x, t) }",
        r"operand 1, 't', is not known: Gather 'g' \(graph.node\[0\]\) cannot be evaluated \(Ind",
    ),
    "an operator that is not evaluated": (
        "(float[2,6] x) => (y) <float[2] a = {1, 2}> { [s] f = Selu(a) y = Resize(x, , f) }",
        r"operand 2, 'f', is not known: Selu 's' \(graph.node\[0\]\) is none of the operators that",
    ),
    "a weight without data": (
        "(float[2,6] x) => (y) { y = Reshape(x, w) }",
        r"operand 1, 'w', is not known: 'w' is in the file without its data",
    ),
}


@pytest.mark.parametrize("why", REFUSALS)
def test_a_refusal_says_what_is_known_to_fail(why, in_process):
    text, message = REFUSALS[why]
    with pytest.raises(ReadError, match=message) as refused:
        read(text, header("w", [2], TensorProto.INT64))
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
    path, outside = tmp_path / "m.onnx", {"location": "m.bin", "save_as_external_data": True}
    onnx.save(made, path, **outside, size_threshold=0, convert_attribute=True)
    assert list(load(path).output_shape[-1][:2]) == [6, 4]
    (tmp_path / "m.bin").unlink()
    missing = "is stored outside of the model, in 'm.bin', which cannot be read"
    if place == "branch":  # the condition is in that file, too, and the other branch can be read
        notes = load(path).meta["notes"]
        assert missing in notes[0]
        assert "else_branch is counted" in notes[0]
        return
    with pytest.raises(ReadError, match=missing):
        load(path)
