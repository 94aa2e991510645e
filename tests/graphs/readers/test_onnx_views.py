"""Views of ONNX models: what is another shape of a tensor, and what copies it."""

import re

import numpy as np
import pytest
from onnx_models import array, header, read, shape_of

from go_rl.core import OpKind
from go_rl.graphs.readers.arithmetic.closed_forms import row_strides, view_strides

pytestmark = pytest.mark.usefixtures("in_process")
IMAGE = (2, 3, 4, 5)
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


def test_dropout_of_training_is_an_operator():
    assert "Dropout" in viewed("h = Dropout(x)", 6).op_type
    assert "Dropout" in viewed("d, mask = Dropout(x) h = Where(mask, d, x)").op_type


@pytest.mark.parametrize(
    ("order", "shape", "copies"),
    [
        ((0, 1, 3, 2), (6, 20), True),
        ((0, 1, 3, 2), (6, 5, 4), False),
        ((0, 1, 3, 2), (2, 3, 5, 2, 2), False),
        ((2, 3, 0, 1), (20, 6), False),
        ((2, 0, 1, 3), (4, 30), True),
        ((0, 1, 2, 3), (120,), False),
    ],
)
def test_a_transposition_is_free_and_a_reshape_copies_what_it_reorders(order, shape, copies):
    target = "i_" + "_".join(map(str, shape))
    graph = viewed(f"[turn] t = Transpose<perm = {list(order)}>(x) [copy] h = Reshape(t, {target})")
    assert graph.op_type == ("Input", "Transpose", *["Reshape"] * copies, "Relu")
    assert graph.bytes_accessed[graph.index["turn"]] == 0
    if copies:
        # The operand, the shape (8 bytes an axis) and the result.
        assert graph.bytes_accessed[graph.index["copy"]] == 2 * SIZE + 8 * len(shape)
    strided = np.zeros(IMAGE, np.float32).transpose(order)
    assert np.shares_memory(strided, strided.reshape(shape)) != copies


def test_strides_of_views_are_those_of_numpy():
    rng = np.random.default_rng(0)
    shapes = [
        (2, 3, 4, 5),
        (6, 20),
        (1, 6, 1, 20),
        (24, 5),
        (120,),
        (2, 60),
        (3, 2, 20),
        (2, 3, 20),
    ]
    copies = 0
    for _ in range(300):
        x = np.zeros(shapes[rng.integers(8)], np.int8).transpose()
        x = x.transpose(rng.permutation(x.ndim))
        target = shapes[rng.integers(8)]
        found, wanted = view_strides(x.shape, x.strides, target), x.reshape(target)
        assert (found is not None) == np.shares_memory(x, wanted)
        copies += found is None
        if found is not None:
            real = [(s, t) for s, t, n in zip(found, wanted.strides, target, strict=True) if n > 1]
            assert all(s == t for s, t in real)
    assert 50 < copies < 250
    assert row_strides((2, 3, 4)) == (12, 4, 1)


def test_a_view_of_a_result_is_an_output_of_its_node():
    graph = read("(float[2,3,4] x) => (y) { [relu] h = Relu(x) y = Flatten(h) }")
    assert graph.op_type == ("Input", "Relu")
    assert graph.is_output.tolist() == [False, True]


def test_a_view_of_a_weight_stays_that_weight():
    text = "(float[64,8] x) => (y) { s = Shape(x) v = Reshape(w, s) [mul] y = Mul(x, v) }"
    graph = read(text, header("w", [512]))
    assert graph.weight_bytes[graph.index["mul"]] == 2048
    assert OpKind.MOVEMENT not in graph.kind.tolist()
