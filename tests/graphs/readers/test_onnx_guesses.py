"""Sizes that neither the file nor the operators tell: guessed when asked for, and counted."""

from __future__ import annotations

import pytest
from onnx import TensorProto, helper
from onnx_models import header, parsed, shape_of
from onnx_models import read as read_text

from go_rl.core.errors import ReadError, UnknownOperatorError
from go_rl.core.graph.op_kind import OpKind
from go_rl.graphs.readers.onnx.reader import read_onnx_model

pytestmark = pytest.mark.usefixtures("in_process")


def read(nodes, *weights, output="y", stated="", x="float[2,3,8,8] x", unknown="bytes"):
    """The graph of nodes after one that no reader knows, which makes ``a`` of ``x``."""
    values = f"<{stated}>" if stated else ""
    text = f"({x}) => ({output}) {values} {{ [twist] a = own.Twist(x) {nodes} }}"
    return read_text(text, *weights, domains=["own"], unknown=unknown)


def test_a_declared_shape_is_no_guess():
    graph = read("y = Relu(a)", stated="float[2,5] a")
    assert shape_of(graph, "twist") == [2, 5]
    assert graph.meta["notes"] == ["operators counted by bytes only: own.Twist (1)"]


def test_what_is_declared_in_part_is_completed_from_the_operand():
    graph = read("y = Relu(a)", stated="float16[p,16,q,4] a")
    assert shape_of(graph, "twist") == [2, 16, 8, 4]
    assert graph.output_bytes[graph.index["twist"]] == 2 * 16 * 8 * 4 * 2
    assert graph.meta["notes"][1] == (
        "sizes guessed, for want of shapes in the file: 1 (own.Twist (1)); those of 1 more rest on "
        "them"
    )


def test_an_element_wise_reader_of_declared_shape_tells():
    graph = read("y = Relu(a)", output="float[2,7] y")
    assert shape_of(graph, "twist") == [2, 7]
    assert graph.meta["notes"][1].endswith("file: 1 (own.Twist (1))")


@pytest.mark.parametrize(
    ("reader", "weight", "x", "shape"),
    [
        ("Conv<group = 2>(a, w)", [4, 5, 3, 3], "float[2,3,8,8] x", [2, 10, 8, 8]),
        ("MatMul(a, w)", [20, 6], "float[2,3,8,8] x", [2, 3, 8, 20]),
        ("Gemm<transB = 1>(a, w)", [6, 20], "float[4,9] x", [4, 20]),
    ],
)
def test_weights_of_a_reader_fix_the_axis_that_they_contract(reader, weight, x, shape):
    graph = read(f"[read] y = {reader}", header("w", weight), x=x)
    assert shape_of(graph, "twist") == shape
    if reader.startswith("Gemm"):
        assert graph.flops[graph.index["read"]] == 2 * 4 * 20 * 6


def test_operators_after_a_guess_never_fail():
    """A guess need not fit what follows: that is counted by its bytes, and its size guessed."""
    to = helper.make_tensor("to", TensorProto.INT64, [2], [6, -1])
    nodes = "[flat] b = Reshape(a, to) [conv] c = Conv(b, w) [add] y = Add(c, x)"
    graph = read(nodes, to, header("w", [4, 5, 3, 3]))
    assert graph.kind[graph.index["twist"]] == OpKind.OTHER
    assert graph.flops[graph.index["conv"]] == 0
    assert graph.bytes_accessed[graph.index["conv"]] > 0
    assert "flat" not in graph.names
    assert "3 (own.Twist (1), Conv (1), Add (1)); those of 1 more" in graph.meta["notes"][1]


def test_a_loop_that_reads_a_guess_rests_on_it():
    graph = read(
        """[loop] y = Loop(m, , x)<body = b (int64 i, bool go, float[2,3,8,8] s) => (bool on, t)
        { t = Add(s, a) on = Identity(go) }>""",
        stated="int64 m = {3}",
    )
    assert graph.flops[graph.index["loop"]] == 3 * 2 * 3 * 8 * 8
    assert "1 (own.Twist (1)); those of" in graph.meta["notes"][1]


def test_a_model_that_is_wrong_beside_the_guess_is_refused():
    with pytest.raises(ReadError, match=r"operator Conv 'conv' .*cannot be inferred"):
        read("[conv] b = Conv(x, w) y = Add(a, b)", header("w", [4, 4]))


def test_an_operator_without_operands_gets_a_scalar():
    graph = read("[r] b = own.Roll() c = Add(a, b) y = Add(x, c)")
    assert graph.output_bytes[graph.index["r"]] == 4


def test_nothing_is_guessed_unless_asked():
    with pytest.raises(UnknownOperatorError, match="--unknown bytes"):
        read("y = Relu(a)", unknown="error")


def test_a_known_operator_of_open_size_names_the_way_out():
    picture = parsed(
        """(float[5] x) => (y) <float[5] a> { [crop] a = com.microsoft.CropAndResize(x)
        [product] y = com.microsoft.FusedMatMul(a, a) }""",
        domains=["com.microsoft"],
    )
    with pytest.raises(UnknownOperatorError, match="CropAndResize"):
        read_onnx_model(picture, "m")
    picture.graph.node[0].op_type, picture.graph.node[0].domain = "Identity", ""
    with pytest.raises(ReadError, match=r"'product' .*no schema .*; guess it .*--unknown bytes"):
        read_onnx_model(picture, "m")
    graph = read_onnx_model(picture, "m", unknown="bytes")
    assert "com.microsoft.FusedMatMul (1)" in graph.meta["notes"][0]
