"""Attributes and operands whose defaults, or combinations, decide shapes, FLOP or bytes."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx_models import header, one_operator, parsed, read, shape_of

from go_rl.core.errors import ReadError
from go_rl.graphs.readers.onnx.reader import read_onnx_model

pytestmark = pytest.mark.usefixtures("in_process")


def last_shape(graph):
    return shape_of(graph, graph.num_nodes - 1)


@pytest.mark.parametrize("opset", [18, 21])
@pytest.mark.parametrize("op", ["GroupNormalization", "MeanVarianceNormalization"])
def test_operators_for_which_onnx_infers_nothing(op, opset):
    grouped = op == "GroupNormalization"
    call = "GroupNormalization<num_groups = 2>(x, s, s)" if grouped else f"{op}(x)"
    text = f"(float[N,4,8,8] x) => (z) {{ y = {call} z = Relu(y) }}"
    graph = read(text, header("s", [4 if opset > 18 else 2]), opset=opset, N=2)
    assert last_shape(graph) == [2, 4, 8, 8]
    assert graph.flops.tolist() == [0, (7 if grouped else 5) * 512, 512]


@pytest.mark.parametrize(("given", "bins"), [("", 257), ("<onesided = 0>", 512)])
def test_a_short_time_fourier_transform_is_one_sided_unless_told(given, bins):
    """97 frames of 512 samples, by ONNX Runtime and the text of the standard."""
    text = f"""(float[1,16000,1] x) => (y) <int64 step = {{160}}, int64 length = {{512}}>
        {{ y = STFT{given}(x, step, , length) }}"""
    graph = read(text, opset=17)
    assert last_shape(graph) == [1, 97, bins, 2]
    assert graph.flops.sum() == 97 * 512 * 8 * 9


AXES = {
    "attribute, default": (17, "DFT(x)", 4096 * 2),
    "attribute": (17, "DFT<axis = 2>(x)", 4096 * 10),
    "operand, default": (20, "DFT(x)", 4096 * 10),
    "operand": (20, "DFT(x, , one)", 4096 * 2),
    "negative operand": (20, "DFT(x, , last)", 4096 * 10),
    "length": (20, "DFT(x, half, two)", 4 * 512 * 9),
    "one-sided": (20, "DFT<onesided = 1>(x)", 4096 * 10),
}


@pytest.mark.parametrize("what", AXES)
def test_the_axis_of_a_fourier_transform(what):
    """``8 n log2(length)``."""
    opset, call, right = AXES[what]
    text = f"""(float[1,4,1024,{1 if "onesided" in call else 2}] x) => (y) <int64 one = {{1}},
        int64 two = {{2}}, int64 last = {{-2}}, int64 half = {{512}}> {{ y = {call} }}"""
    assert read(text, opset=opset).flops.sum() == 8 * right


def test_a_fourier_transform_along_an_unknown_axis():
    text = "(float[1,4,1024,2] x, int64 axis) => (float[1,4,1024,2] y) { y = DFT(x, , axis) }"
    with pytest.raises(ReadError, match="operand 2 must be one constant whole number"):
        read(text)


def test_unique_parts_along_an_axis():
    text = """(float[100,8] x) => (y, int64[n] counts, int64[m] inverse) {
        [unique] u, first, inverse, counts = Unique<axis = 0>(x)
        [rows] y = Gather(table, first) }"""
    graph = read(text, header("table", [100, 16]))
    assert graph.output_bytes[graph.index["unique"]] == 100 * 8 * 4 + 3 * 100 * 8
    assert shape_of(graph, "rows") == [100, 16]


def test_what_a_known_condition_picks():
    text = "(float[3,4] x) => (y) <bool[3] c = {1, 0, 1}> { y = Compress<axis = 0>(x, c) }"
    assert last_shape(read(text)) == [2, 4]


TAPS = sum(0 <= 2 * a + k - 3 < 8 for a in range(4) for k in range(7))
"""Of kernel 7 and stride 2, from 4 to 8: total padding 2 * 3 + 7 - 8 = 5, 3 before and 2 after."""


@pytest.mark.parametrize(
    "attribute", ["output_shape = [8, 8]", "pads = [3, 3, 2, 2]", 'auto_pad = "SAME_LOWER"']
)
def test_the_padding_of_a_transposed_convolution_with_an_output_shape(attribute):
    text = f"""(float[1,3,4,4] x) => (float[1,5,8,8] y)
        {{ y = ConvTranspose<strides = [2, 2], {attribute}>(x, w) }}"""
    assert read(text, header("w", [3, 5, 7, 7])).flops.sum() == 2 * 3 * 5 * TAPS**2


@pytest.mark.parametrize("domain", ["", "com.microsoft"])
@pytest.mark.parametrize(
    ("shape", "attributes", "rotated"),
    [
        ([1, 8, 16, 80], {"rotary_embedding_dim": 32}, 32),
        ([1, 16, 640], {"rotary_embedding_dim": 32, "num_heads": 8}, 32),
        ([1, 8, 16, 80], {}, 80),
    ],
)
def test_a_rotary_embedding_of_a_part_of_each_head(domain, shape, attributes, rotated):
    """3 FLOP for each element that is rotated."""
    places = [([1, 16], TensorProto.INT64)] if domain else []
    operands = [shape, *places, [1, 16, 16], [1, 16, 16]]
    made = one_operator("RotaryEmbedding", operands, [shape], 23, domain, **attributes)
    assert read_onnx_model(made, "m").flops.sum() == 3 * 8 * 16 * rotated


@pytest.mark.parametrize(("rank", "stored"), [(1, 3 * (4 + 8)), (2, 3 * (4 + 16))])
@pytest.mark.parametrize("place", ["initializer", "Constant"])
def test_a_sparse_array_stores_values_and_coordinates(rank, stored, place):
    at = [[0, 1], [5, 6], [9, 9]] if rank == 2 else [1, 56, 99]
    sparse = helper.make_sparse_tensor(
        helper.make_tensor("w", TensorProto.FLOAT, [3], [1.0, 2.0, 3.0]),
        helper.make_tensor("at", TensorProto.INT64, np.shape(at), np.ravel(at)),
        [10, 10],
    )
    made = parsed("(float[4,10] x) => (y) { y = MatMul(x, w) }")
    if place == "Constant":
        product = made.graph.node.pop()
        constant = helper.make_node("Constant", [], ["w"], sparse_value=sparse)
        made.graph.node.extend([constant, product])
    else:
        made.graph.sparse_initializer.append(sparse)
    graph = read_onnx_model(made, "m")
    assert graph.weight_bytes.sum() == stored
    assert graph.flops.sum() == 2 * 4 * 10 * 10


def with_function(opset, own, body):
    return onnx.parser.parse_model(
        f"""<ir_version: 10, opset_import: ["" : {opset}, "lib" : 1]>
        g (float[2,3] x) => (y) {{ y = lib.f(x) }}
        <domain: "lib", opset_import: ["" : {own}]> f (a) => (b) {{ {body} }}"""
    )


@pytest.mark.parametrize(
    ("own", "body", "right"),
    [
        (18, "t = Relu(a) b = Sigmoid(t)", 4 * 6),
        (11, "t = Unsqueeze<axes = [0]>(a) b = ReduceSum<axes = [1]>(t)", 3),
    ],
)
def test_a_function_of_another_operator_set_is_converted(own, body, right):
    assert read_onnx_model(with_function(21, own, body), "m").flops.sum() == right


def test_a_function_that_cannot_be_converted():
    with pytest.raises(ReadError, match=r"its local functions cannot be inlined .*Relu"):
        read_onnx_model(with_function(13, 21, "b = Relu(a)"), "m")


@pytest.mark.parametrize(("opset", "call"), [(1, "Relu(x)"), (12, "GreaterOrEqual(x, x)")])
def test_versions_of_operators_that_infer_nothing_take_those_of_a_later_one(opset, call):
    graph = read(f"(float[n,3] x) => (y) {{ y = {call} }}", opset=opset, n=2)
    assert last_shape(graph) == [2, 3]


@pytest.mark.parametrize(("opset", "op"), [(10, "MaxPool"), (17, "AveragePool"), (22, "MaxPool")])
def test_no_pooling_window_starts_behind_the_data(op, opset):
    """11 x 10 with padding, by ONNX Runtime: the fifth window of the first axis would."""
    text = f"""(float[1,2,11,10] x) => (y) {{ y = {op}<kernel_shape = [2, 2], strides = [3, 3],
        pads = [1, 0, 0, 1], ceil_mode = 1>(x) }}"""
    assert last_shape(read(text, opset=opset)) == [1, 2, 4, 4]


@pytest.mark.parametrize(("mode", "stride"), [("SAME_UPPER", 2), ("SAME_LOWER", 4)])
def test_a_transposed_convolution_of_the_same_size_is_not_padded_again(mode, stride):
    """5 x 6 times the stride, by ONNX Runtime and the text of the standard: a kernel of 3 and the
    padding just reach a stride of 4."""
    text = f"""(float[1,2,5,6] x) => (y) {{ y = ConvTranspose<auto_pad = "{mode}",
        strides = [{stride}, {stride}], output_padding = [1, 1]>(x, w) }}"""
    assert last_shape(read(text, header("w", [2, 3, 3, 3]))) == [1, 3, 5 * stride, 6 * stride]
