"""Views of ONNX models: what is another shape of a tensor, and what copies it."""

import numpy as np
import pytest
from onnx import helper
from onnx_models import array, header, model, value

from go_rl.core import OpKind
from go_rl.graphs.readers.arithmetic.view_strides import row_strides, view_strides
from go_rl.graphs.readers.onnx.reader import read_onnx_model

node = helper.make_node
pytestmark = pytest.mark.usefixtures("in_process")
IMAGE = (2, 3, 4, 5)
SIZE = 4 * 120


def read(nodes, result, opset=20):
    stored = [array(name, list(map(int, name.split("_")[1:])), np.int64) for name in
              {i for n in nodes for i in n.input if i.startswith("i_")}]  # fmt: skip
    stored.append(array("no", False, np.bool_))
    last = node("Relu", [nodes[-1].output[0]], ["y"], name="last")
    return read_onnx_model(
        model([*nodes, last], [value("x", list(IMAGE))], [value("y", result)], stored, opset=opset),
        "m",
    )


@pytest.mark.parametrize(
    ("view", "result", "opset"),
    [
        (node("Identity", ["x"], ["h"]), [2, 3, 4, 5], 20),
        (node("Reshape", ["x", "i_6_20"], ["h"]), [6, 20], 20),
        (node("Flatten", ["x"], ["h"], axis=2), [6, 20], 20),
        (node("Unsqueeze", ["x", "i_0"], ["h"]), [1, 2, 3, 4, 5], 20),
        (node("Dropout", ["x"], ["h"]), [2, 3, 4, 5], 20),
        (node("Dropout", ["x", "", "no"], ["h"]), [2, 3, 4, 5], 20),
        (node("Dropout", ["x"], ["h"], is_test=1), [2, 3, 4, 5], 6),
    ],
)
def test_another_shape_of_a_tensor_is_that_tensor(view, result, opset):
    graph = read([view], result, opset)
    assert graph.op_type == ("Input", "Relu")
    assert graph.edge_bytes.tolist() == [SIZE]
    assert [int(s) for s in graph.output_shape[1] if s >= 0] == result


def test_dropout_of_training_is_an_operator():
    assert "Dropout" in read([node("Dropout", ["x"], ["h"])], [2, 3, 4, 5], 6).op_type
    dropped = [node("Dropout", ["x"], ["d", "mask"]), node("Where", ["mask", "d", "x"], ["h"])]
    masked = read(dropped, [2, 3, 4, 5])
    assert "Dropout" in masked.op_type


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
    nodes = [
        node("Transpose", ["x"], ["t"], perm=list(order), name="turn"),
        node("Reshape", ["t", "i_" + "_".join(map(str, shape))], ["h"], name="copy"),
    ]
    graph = read(nodes, list(shape))
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
    nodes = [node("Relu", ["x"], ["h"], name="relu"), node("Flatten", ["h"], ["y"])]
    graph = read_onnx_model(model(nodes, [value("x", [2, 3, 4])], ["y"]), "m")
    assert graph.op_type == ("Input", "Relu")
    assert graph.is_output.tolist() == [False, True]


def test_a_view_of_a_weight_stays_that_weight():
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Reshape", ["w", "s"], ["v"]),
        node("Mul", ["x", "v"], ["y"], name="mul"),
    ]
    graph = read_onnx_model(model(nodes, [value("x", [64, 8])], ["y"], [header("w", [512])]), "m")
    assert graph.weight_bytes[graph.index["mul"]] == 2048
    assert OpKind.MOVEMENT not in graph.kind.tolist()
