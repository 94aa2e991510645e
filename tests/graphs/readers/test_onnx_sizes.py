"""Sizes of ONNX tensors: of inputs and of others, defaults, guesses, and views."""

import re

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_models import array, header, model, parsed, read, shape_of, value

from go_rl.core.errors import ReadError, UnknownOperatorError
from go_rl.graphs.readers.arithmetic.size_expression import size_of
from go_rl.graphs.readers.onnx.by_reference import load_by_reference
from go_rl.graphs.readers.onnx.dimensions import PLACEHOLDERS, dims_of_inputs
from go_rl.graphs.readers.onnx.reader import read_onnx_model

node = helper.make_node
pytestmark = pytest.mark.usefixtures("in_process")


def test_two_sizes_with_one_placeholder_are_two_sizes():
    for name in PLACEHOLDERS:
        nodes, inputs = [node("Conv", ["x", "w"], ["y"])], [value("x", [-1, 3, name, name])]
        made = model(nodes, inputs, ["y"], [header("w", [8, 3, 3, 3])])
        dims = dims_of_inputs(made, {"x": (6, 3, 48, 192)}, {}, "m")
        assert dims == {"x_0": 6, "x_2": 48, "x_3": 192}
        graph = read_onnx_model(made, "m", dims)
        assert graph.flops.sum() == 2 * 27 * 8 * 6 * 46 * 190


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("s0 + 1", 6), ("2*s0 - batch", 7), ("s0//2", 2), ("floor(s0/2)", 2), ("ceiling(s0/2)", 3),
        ("Max(1, batch - s0)", 1), ("Mod(s0, batch)", 2), ("(s0 + 1)*batch", 18), ("-s0 + 7", 2),
        ("s0/2", None), ("s1 + 1", None), ("s0 / 0", None), ("__import__('os')", None),
        ("s0.real", None), ("s0 +", None), ("unk__12", None),
    ],
)  # fmt: skip
def test_a_size_made_of_others(text, size):
    assert size_of(text, {"s0": 5, "batch": 3}) == size


def shared(**dims):
    """Two inputs whose sizes are made of one symbol that no axis has alone."""
    inputs = [value("x", ["s0 + 1", 4]), value("y", ["s0", "2*s1"]), value("z", [1, "s1 + s0"])]
    nodes = [node("Relu", [v.name], [f"r_{v.name}"]) for v in inputs]
    return read_onnx_model(model(nodes, inputs, ["r_x", "r_y", "r_z"]), "m", dims)


@pytest.mark.parametrize(
    "dims", [{"s0": 3, "s1": 5}, {"s0 + 1": 4, "s1": 5}, {"s0 + 1": 4, "2*s1": 10}]
)
def test_one_size_fixes_all_dimensions_that_share_it(dims):
    assert shared(**dims).flops.sum() == 4 * 4 + 3 * 10 + 8


def test_sizes_that_contradict_the_model_are_refused_whatever_the_file_states():
    text = """(float[N,6] x) => (y) <float[2,3] h, int64[2] t = {2, 3}>
        { h = Reshape(x, t) y = Relu(h) }"""
    assert read(text, N=1).flops.sum() == 6
    with pytest.raises(ReadError, match="Reshape"):
        read(text, N=2)


@pytest.fixture
def path(tmp_path):
    """A product with a large array, a small one, and one that is not raw."""
    rng = np.random.default_rng(0)
    stored = [numpy_helper.from_array(rng.standard_normal((100, 100)), "large"),
              numpy_helper.from_array(rng.standard_normal(100), "small"),
              helper.make_tensor("typed", TensorProto.DOUBLE, [100], [0.5] * 100)]  # fmt: skip
    text = """(double[100] x) => (double[100] y)
        { a = MatMul(x, large) y = Sum(a, small, typed) }"""
    made = parsed(text, *stored)
    made.doc_string = "kept"
    onnx.save(made, tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


@pytest.mark.parametrize("change", [
    lambda data: data[: len(data) // 2], lambda data: data[:-1], lambda data: b"\xff" * 30,
    lambda data: b"\x0b" + data, lambda data: b"",
])  # fmt: skip
def test_what_is_no_model_is_refused(path, change):
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(ReadError, match=r"m.onnx: not an ONNX model, or cut off \("):
        load_by_reference(path)
    path.unlink()
    with pytest.raises(ReadError, match="cannot be read"):
        load_by_reference(path)


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


def read_after(nodes, *weights, x="float[2,3,8,8] x", unknown="bytes"):
    """The graph of nodes after one that no reader knows, which makes ``a`` of ``x``."""
    text = f"({x}) => (y) {{ [twist] a = own.Twist(x) {nodes} }}"
    return read(text, *weights, domains=["own"], unknown=unknown)


@pytest.mark.parametrize(
    ("reader", "weight", "x", "shape"),
    [
        ("Conv<group = 2>(a, w)", [4, 5, 3, 3], "float[2,3,8,8] x", [2, 10, 8, 8]),
        ("MatMul(a, w)", [20, 6], "float[2,3,8,8] x", [2, 3, 8, 20]),
        ("Gemm<transB = 1>(a, w)", [6, 20], "float[4,9] x", [4, 20]),
    ],
)
def test_weights_of_a_reader_fix_the_axis_that_they_contract(reader, weight, x, shape):
    graph = read_after(f"[read] y = {reader}", header("w", weight), x=x)
    assert shape_of(graph, "twist") == shape
    if reader.startswith("Gemm"):
        assert graph.flops[graph.index["read"]] == 2 * 4 * 20 * 6


def test_nothing_is_guessed_unless_asked():
    with pytest.raises(UnknownOperatorError, match="--unknown bytes"):
        read_after("y = Relu(a)", unknown="error")


SIZE = 4 * 120


def viewed(nodes, opset=20):
    """The graph of a rectified image behind its views."""
    numbers = sorted(set(re.findall(r"i_[\d_]+", nodes)))
    stored = [array(n, list(map(int, n.split("_")[1:])), np.int64) for n in numbers]
    text = f"(float[2,3,4,5] x) => (y) {{ {nodes} [last] y = Relu(h) }}"
    return read(text, *stored, array("no", False, np.bool_), opset=opset)


@pytest.mark.parametrize(
    ("view", "result", "opset"),
    [
        ("Identity(x)", [2, 3, 4, 5], 20),
        ("Reshape(x, i_6_20)", [6, 20], 20),
        ("Flatten<axis = 2>(x)", [6, 20], 20),
        ("Unsqueeze(x, i_0)", [1, 2, 3, 4, 5], 20),
        ("Dropout(x)", [2, 3, 4, 5], 20),
        ("Dropout(x, , no)", [2, 3, 4, 5], 20),
        ("Dropout<is_test = 1>(x)", [2, 3, 4, 5], 6),
    ],
)
def test_another_shape_of_a_tensor_is_that_tensor(view, result, opset):
    graph = viewed(f"h = {view}", opset)
    assert graph.op_type == ("Input", "Relu")
    assert graph.edge_bytes.tolist() == [SIZE]
    assert shape_of(graph, 1) == result
