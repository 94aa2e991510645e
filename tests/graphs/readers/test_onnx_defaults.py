"""Attributes and operands whose defaults, or combinations, decide shapes, FLOP or bytes."""

from __future__ import annotations

from math import prod

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx_models import array, header, model, one_operator, value

from go_rl.core.errors import ReadError
from go_rl.graphs.readers.onnx.reader import read_onnx_model

node = helper.make_node


pytestmark = pytest.mark.usefixtures("in_process")


def flops(made):
    return read_onnx_model(made, "m").flops.sum()


def last_shape(made):
    return [n for n in read_onnx_model(made, "m").output_shape[-1].tolist() if n >= 0]


@pytest.mark.parametrize("opset", [18, 21])
@pytest.mark.parametrize("op", ["GroupNormalization", "MeanVarianceNormalization"])
def test_operators_for_which_onnx_infers_nothing(op, opset):
    scaled = op == "GroupNormalization"
    weights = [header("s", [4 if opset > 18 else 2]), header("b", [4 if opset > 18 else 2])]
    operands = ["x", "s", "b"] if scaled else ["x"]
    attributes = {"num_groups": 2} if scaled else {}
    nodes = [node(op, operands, ["y"], **attributes), node("Relu", ["y"], ["z"])]
    graph = read_onnx_model(
        model(nodes, [value("x", ["N", 4, 8, 8])], ["z"], weights if scaled else (), opset=opset),
        "m",
        {"N": 2},
    )
    assert graph.output_shape[-1].tolist() == [2, 4, 8, 8]
    assert graph.flops.tolist() == [0, (7 if scaled else 5) * 512, 512]


@pytest.mark.parametrize(
    ("given", "bins"), [({}, 257), ({"onesided": 1}, 257), ({"onesided": 0}, 512)]
)
def test_a_short_time_fourier_transform_is_one_sided_unless_told(given, bins):
    """97 frames of 512 samples, by ONNX Runtime and the text of the standard."""
    nodes = [node("STFT", ["x", "step", "", "length"], ["y"], **given)]
    weights = [array("step", 160, np.int64), array("length", 512, np.int64)]
    made = model(nodes, [value("x", [1, 16000, 1])], ["y"], weights, opset=17)
    assert last_shape(made) == [1, 97, bins, 2]
    assert flops(made) == 97 * 512 * 8 * 9


AXES = {
    "attribute, default": (17, [], {}, 4096 * 2),
    "attribute": (17, [], {"axis": 2}, 4096 * 10),
    "operand, default": (20, [], {}, 4096 * 10),
    "operand": (20, ["", "one"], {}, 4096 * 2),
    "negative operand": (20, ["", "last"], {}, 4096 * 10),
    "length": (20, ["half", "two"], {}, 4 * 512 * 9),
    "one-sided": (20, [], {"onesided": 1}, 4096 * 10),
}


@pytest.mark.parametrize("what", AXES)
def test_the_axis_of_a_fourier_transform(what):
    """``8 n log2(length)``."""
    opset, operands, attributes, right = AXES[what]
    weights = [
        array(n, v, np.int64) for n, v in (("one", 1), ("two", 2), ("last", -2), ("half", 512))
    ]
    nodes = [node("DFT", ["x", *operands], ["y"], **attributes)]
    width = 1 if "onesided" in attributes else 2
    made = model(nodes, [value("x", [1, 4, 1024, width])], ["y"], weights, opset=opset)
    assert flops(made) == 8 * right


def test_a_fourier_transform_along_an_unknown_axis():
    nodes = [node("DFT", ["x", "", "axis"], ["y"])]
    inputs = [value("x", [1, 4, 1024, 2]), value("axis", [], TensorProto.INT64)]
    made = model(nodes, inputs, [value("y", [1, 4, 1024, 2])])
    with pytest.raises(ReadError, match="operand 2 must be one constant whole number"):
        read_onnx_model(made, "m")


def test_unique_parts_along_an_axis():
    nodes = [
        node("Unique", ["x"], ["u", "first", "inverse", "counts"], axis=0),
        node("Gather", ["table", "first"], ["y"]),
    ]
    outputs = ["y", *(value(n, None, TensorProto.INT64) for n in ("counts", "inverse"))]
    made = model(nodes, [value("x", [100, 8])], outputs, [header("table", [100, 16])])
    graph = read_onnx_model(made, "m")
    places = dict(zip(graph.op_type, range(graph.num_nodes), strict=True))
    assert graph.output_bytes[places["Unique"]] == 100 * 8 * 4 + 3 * 100 * 8
    assert graph.output_shape[places["Gather"]].tolist() == [100, 16]


def test_what_a_known_condition_picks():
    nodes = [node("Compress", ["x", "c"], ["y"], axis=0)]
    weights = [array("c", [True, False, True], np.bool_)]
    assert last_shape(model(nodes, [value("x", [3, 4])], ["y"], weights)) == [2, 4]


TAPS = sum(0 <= 2 * a + k - 3 < 8 for a in range(4) for k in range(7))
"""Of kernel 7 and stride 2, from 4 to 8: total padding 2 * 3 + 7 - 8 = 5, 3 before and 2 after."""


@pytest.mark.parametrize(
    "attributes", [{"output_shape": [8, 8]}, {"pads": [3, 3, 2, 2]}, {"auto_pad": "SAME_LOWER"}]
)
def test_the_padding_of_a_transposed_convolution_with_an_output_shape(attributes):
    nodes = [node("ConvTranspose", ["x", "w"], ["y"], strides=[2, 2], **attributes)]
    made = model(
        nodes, [value("x", [1, 3, 4, 4])], [value("y", [1, 5, 8, 8])], [header("w", [3, 5, 7, 7])]
    )
    assert flops(made) == 2 * 3 * 5 * TAPS**2


@pytest.mark.parametrize("domain", ["", "com.microsoft"])
def test_a_rotary_embedding_of_a_part_of_each_head(domain):
    """3 FLOP for each element that is rotated: 32 of 80."""
    four = [[1, 8, 16, 80], [1, 16, 16], [1, 16, 16]]
    three = [[1, 16, 640], [1, 16, 16], [1, 16, 16]]
    if domain:
        four, three = ([s[0], ([1, 16], TensorProto.INT64), *s[1:]] for s in (four, three))
    made = one_operator("RotaryEmbedding", four, [four[0]], 23, domain, rotary_embedding_dim=32)
    assert flops(made) == 3 * 8 * 16 * 32
    made = one_operator(
        "RotaryEmbedding", three, [three[0]], 23, domain, rotary_embedding_dim=32, num_heads=8
    )
    assert flops(made) == 3 * 8 * 16 * 32
    whole = one_operator("RotaryEmbedding", four, [four[0]], 23, domain)
    assert flops(whole) == 3 * 8 * 16 * 80


@pytest.mark.parametrize(("rank", "stored"), [(1, 3 * (4 + 8)), (2, 3 * (4 + 16))])
@pytest.mark.parametrize("place", ["initializer", "Constant"])
def test_a_sparse_array_stores_values_and_coordinates(rank, stored, place):
    at = [[0, 1], [5, 6], [9, 9]] if rank == 2 else [1, 56, 99]
    sparse = helper.make_sparse_tensor(
        helper.make_tensor("w", TensorProto.FLOAT, [3], [1.0, 2.0, 3.0]),
        helper.make_tensor("at", TensorProto.INT64, np.shape(at), np.ravel(at)),
        [10, 10],
    )
    nodes = [node("MatMul", ["x", "w"], ["y"])]
    if place == "Constant":
        nodes.insert(0, node("Constant", [], ["w"], sparse_value=sparse))
    made = model(nodes, [value("x", [4, 10])], ["y"])
    if place == "initializer":
        made.graph.sparse_initializer.append(sparse)
    graph = read_onnx_model(made, "m")
    assert graph.weight_bytes.sum() == stored
    assert graph.flops.sum() == 2 * 4 * 10 * 10


def local(nodes, opset):
    return helper.make_function("lib", "f", ["a"], ["b"], nodes, [helper.make_opsetid("", opset)])


@pytest.mark.parametrize(
    ("opset", "nodes", "right"),
    [
        (18, [node("Relu", ["a"], ["t"]), node("Sigmoid", ["t"], ["b"])], 4 * 6),
        (
            11,
            [node("Unsqueeze", ["a"], ["t"], axes=[0]), node("ReduceSum", ["t"], ["b"], axes=[1])],
            3,
        ),
    ],
)
def test_a_function_of_another_operator_set_is_converted(opset, nodes, right):
    made = model(
        [node("f", ["x"], ["y"], domain="lib")],
        [value("x", [2, 3])],
        ["y"],
        functions=[local(nodes, opset)],
        domains=["lib"],
    )
    assert flops(made) == right


def test_a_function_that_cannot_be_converted():
    made = model(
        [node("f", ["x"], ["y"], domain="lib")],
        [value("x", [2, 3])],
        ["y"],
        opset=13,
        functions=[local([node("Relu", ["a"], ["b"])], 21)],
        domains=["lib"],
    )
    with pytest.raises(ReadError, match=r"its local functions cannot be inlined .*Relu"):
        read_onnx_model(made, "m")


def test_versions_of_operators_that_infer_nothing_take_those_of_a_later_one():
    for opset, op, operands in ((1, "Relu", ["x"]), (12, "GreaterOrEqual", ["x", "x"])):
        made = model([node(op, operands, ["y"])], [value("x", ["n", 3])], ["y"], opset=opset)
        made.graph.output[0].CopyFrom(onnx.ValueInfoProto(name="y"))
        graph = read_onnx_model(made, "m", {"n": 2})
        assert prod(graph.output_shape[-1]) == 6


@pytest.mark.parametrize("opset", [10, 17, 22])
@pytest.mark.parametrize("op", ["MaxPool", "AveragePool"])
def test_no_pooling_window_starts_behind_the_data(op, opset):
    """11 x 10 with padding, by ONNX Runtime: the fifth window of the first axis would."""
    attributes = {"kernel_shape": [2, 2], "strides": [3, 3], "pads": [1, 0, 0, 1], "ceil_mode": 1}
    nodes = [node(op, ["x"], ["y"], **attributes)]
    made = model(nodes, [value("x", [1, 2, 11, 10])], ["y"], opset=opset)
    assert last_shape(made) == [1, 2, 4, 4]


@pytest.mark.parametrize("stride", [2, 4])
@pytest.mark.parametrize("mode", ["SAME_UPPER", "SAME_LOWER"])
def test_a_transposed_convolution_of_the_same_size_is_not_padded_again(mode, stride):
    """5 x 6 times the stride, by ONNX Runtime and the text of the standard."""
    attributes = {"auto_pad": mode, "strides": [stride, stride], "output_padding": [1, 1]}
    # A kernel of 3 and the padding just reach a stride of 4.
    nodes = [node("ConvTranspose", ["x", "w"], ["y"], **attributes)]
    made = model(nodes, [value("x", [1, 2, 5, 6])], ["y"], [header("w", [2, 3, 3, 3])])
    assert last_shape(made) == [1, 3, 5 * stride, 6 * stride]
