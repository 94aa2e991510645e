"""Attributes and operands whose defaults, or combinations, decide shapes, FLOP or bytes."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx_models import header, parsed, read, shape_of

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
