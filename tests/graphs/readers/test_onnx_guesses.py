"""Sizes that neither the file nor the operators tell: guessed when asked for, and counted."""

from __future__ import annotations

import pytest
from onnx import TensorProto, helper
from onnx_models import header, model, value

from go_rl.core.errors import ReadError, UnknownOperatorError
from go_rl.core.graph.op_kind import OpKind
from go_rl.graphs.readers.onnx.reader import read_onnx_model

node = helper.make_node
X = [value("x", [2, 3, 8, 8])]

pytestmark = pytest.mark.usefixtures("in_process")


def twist(*others, result="a", operand="x", name="twist"):
    return [node("Twist", [operand], [result], domain="own", name=name), *others]


def read(nodes, output="y", weights=(), shapes=(), inputs=X):
    built = model(nodes, inputs, [output], weights, shapes=shapes, domains=["own"])
    return read_onnx_model(built, "m", unknown="bytes")


def shape_of(graph, name):
    return [int(n) for n in graph.output_shape[graph.index[name]] if n >= 0]


def test_a_declared_shape_is_no_guess():
    graph = read(twist(node("Relu", ["a"], ["y"])), shapes=[value("a", [2, 5])])
    assert shape_of(graph, "twist") == [2, 5]
    assert graph.meta["notes"] == ["operators counted by bytes only: own.Twist (1)"]


def test_what_is_declared_in_part_is_completed_from_the_operand():
    relu = node("Relu", ["a"], ["y"])
    half = value("a", [None, 16, None, 4], TensorProto.FLOAT16)
    graph = read(twist(relu), shapes=[half])
    assert shape_of(graph, "twist") == [2, 16, 8, 4]
    assert graph.output_bytes[graph.index["twist"]] == 2 * 16 * 8 * 4 * 2
    assert graph.meta["notes"][1] == (
        "sizes guessed, for want of shapes in the file: 1 (own.Twist (1)); those of 1 more rest on "
        "them"
    )


def test_an_element_wise_reader_of_declared_shape_tells():
    graph = read(twist(node("Relu", ["a"], ["y"])), value("y", [2, 7]))
    assert shape_of(graph, "twist") == [2, 7]
    assert graph.meta["notes"][1].endswith("file: 1 (own.Twist (1))")


READERS = {
    "Conv": (node("Conv", ["a", "w"], ["y"], group=2, name="read"), [4, 5, 3, 3], [2, 10, 8, 8]),
    "MatMul": (node("MatMul", ["a", "w"], ["y"], name="read"), [20, 6], [2, 3, 8, 20]),
}


@pytest.mark.parametrize(("reader", "weight", "shape"), READERS.values(), ids=READERS)
def test_weights_of_a_reader_fix_the_axis_that_they_contract(reader, weight, shape):
    graph = read(twist(reader), weights=[header("w", weight)])
    assert shape_of(graph, "twist") == shape


def test_a_gemm_fixes_its_columns():
    gemm = node("Gemm", ["a", "w"], ["y"], transB=1, name="read")
    graph = read(twist(gemm), weights=[header("w", [6, 20])], inputs=[value("x", [4, 9])])
    assert shape_of(graph, "twist") == [4, 20]
    assert graph.flops[graph.index["read"]] == 2 * 4 * 20 * 6


def test_operators_after_a_guess_never_fail():
    """A guess need not fit what follows: that is counted by its bytes, and its size guessed."""
    nodes = twist(
        node("Reshape", ["a", "to"], ["b"], name="flat"),
        node("Conv", ["b", "w"], ["c"], name="conv"),
        node("Add", ["c", "x"], ["y"], name="add"),
    )
    to = helper.make_tensor("to", TensorProto.INT64, [2], [6, -1])
    graph = read(nodes, weights=[to, header("w", [4, 5, 3, 3])])
    assert graph.kind[graph.index["twist"]] == OpKind.OTHER
    assert graph.flops[graph.index["conv"]] == 0
    assert graph.bytes_accessed[graph.index["conv"]] > 0
    assert "flat" not in graph.names
    assert "3 (own.Twist (1), Conv (1), Add (1)); those of 1 more" in graph.meta["notes"][1]


def test_a_loop_that_reads_a_guess_rests_on_it():
    scalar, truth = TensorProto.INT64, TensorProto.BOOL
    body = helper.make_graph(
        [node("Add", ["s", "a"], ["t"]), node("Identity", ["go"], ["on"])],
        "body",
        [value("i", [], scalar), value("go", [], truth), value("s", [2, 3, 8, 8])],
        [value("on", [], truth), value("t", None)],
    )
    trips = helper.make_tensor("m", scalar, [], [3])
    loop = node("Loop", ["m", "", "x"], ["y"], name="loop", body=body)
    graph = read(twist(loop), weights=[trips])
    assert graph.flops[graph.index["loop"]] == 3 * 2 * 3 * 8 * 8
    assert "1 (own.Twist (1)); those of" in graph.meta["notes"][1]


def test_a_model_that_is_wrong_beside_the_guess_is_refused():
    nodes = twist(node("Conv", ["x", "w"], ["b"], name="conv"), node("Add", ["a", "b"], ["y"]))
    with pytest.raises(ReadError, match=r"operator Conv 'conv' .*cannot be inferred"):
        read(nodes, weights=[header("w", [4, 4])])


def test_an_operator_without_operands_gets_a_scalar():
    graph = read([node("Roll", [], ["a"], domain="own", name="r"), node("Add", ["x", "a"], ["y"])])
    assert graph.output_bytes[graph.index["r"]] == 4


def test_nothing_is_guessed_unless_asked():
    built = model(twist(node("Relu", ["a"], ["y"])), X, ["y"], domains=["own"])
    with pytest.raises(UnknownOperatorError, match="--unknown bytes"):
        read_onnx_model(built, "m")


def test_a_known_operator_of_open_size_names_the_way_out():
    picture = model(
        [node("CropAndResize", ["x"], ["a"], domain="com.microsoft", name="crop"),
         node("FusedMatMul", ["a", "a"], ["y"], domain="com.microsoft", name="product")],
        [value("x", [5])],
        ["y"],
        shapes=[value("a", [5])],
        domains=["com.microsoft"],
    )  # fmt: skip
    with pytest.raises(UnknownOperatorError, match="CropAndResize"):
        read_onnx_model(picture, "m")
    picture.graph.node[0].op_type, picture.graph.node[0].domain = "Identity", ""
    with pytest.raises(ReadError, match=r"'product' .*no schema .*; guess it .*--unknown bytes"):
        read_onnx_model(picture, "m")
    graph = read_onnx_model(picture, "m", unknown="bytes")
    assert "com.microsoft.FusedMatMul (1)" in graph.meta["notes"][0]
