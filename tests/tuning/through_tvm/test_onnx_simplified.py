"""ONNX models that are rewritten for TVM compute the same, by ONNX's reference evaluator."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from go_rl.graphs.tables import names
from go_rl.tuning.tvm.models.onnx_simplified import simplified, unsupported

PLAIN = names(
    "Abs Add Cast Clip Concat Constant Conv DequantizeLinear Div Equal Gather HardSigmoid Identity"
    " If MatMul Max Mul QuantizeLinear ReduceMean ReduceSum Relu Reshape Sigmoid Slice Sqrt Squeeze"
    " Sub Tanh Transpose Unsqueeze Where"
)
RNG = np.random.default_rng(0)


def values(tensors: str, kind: int = TensorProto.FLOAT, shape: Sequence[int] | None = None) -> list:
    return [helper.make_tensor_value_info(each, kind, shape) for each in tensors.split()]


def model_of(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    weights: dict[str, np.ndarray] | None = None,
    opset: int = 17,
) -> onnx.ModelProto:
    initial = [numpy_helper.from_array(array, name) for name, array in (weights or {}).items()]
    graph = helper.make_graph(list(nodes), "model", inputs, outputs, initial)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def agree(model: onnx.ModelProto, feed: dict[str, np.ndarray]) -> Counter[str]:
    """Check that the rewritten model computes the same; returns its operators."""
    made = simplified(model, PLAIN)
    assert unsupported(made, PLAIN) == {}
    with np.errstate(all="ignore"):  # the norm of nothing
        wanted, found = (ReferenceEvaluator(each).run(None, feed) for each in (model, made))
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
    return Counter(node.op_type for node in made.graph.node)


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize(
    ("kind", "gates", "more"),
    [("LSTM", 4, {}), ("GRU", 3, {}), ("GRU", 3, {"linear_before_reset": 1}), ("RNN", 1, {})],
)
def test_recurrent_operators_are_written_out(kind, gates, more, direction):
    """Five steps, batch 2, three numbers each, four hidden ones, with biases."""
    ways = 2 if direction == "bidirectional" else 1
    weights = {
        "w": RNG.standard_normal((ways, 4 * gates, 3)),
        "r": RNG.standard_normal((ways, 4 * gates, 4)),
        "b": RNG.standard_normal((ways, 8 * gates)),
    }  # fmt: skip
    ends = ["y", "h", "c"] if kind == "LSTM" else ["y", "h"]
    node = helper.make_node(kind, ["x", "w", "r", "b"], ends, hidden_size=4, direction=direction,
                            **more)  # fmt: skip
    model = model_of(
        [node], values("x", shape=(5, 2, 3)), values(" ".join(ends)),
        {name: array.astype(np.float32) for name, array in weights.items()},
    )  # fmt: skip
    found = agree(model, {"x": RNG.standard_normal((5, 2, 3)).astype(np.float32)})
    assert found["MatMul"] >= 5 * ways


def test_a_function_of_the_model_and_one_of_onnx_are_expanded():
    body = [helper.make_node("Mul", ["a", "a"], ["b"])]
    square = helper.make_function("own", "Square", ["a"], ["b"], body,
                                  [helper.make_opsetid("", 17)])  # fmt: skip
    nodes = [
        helper.make_node("Square", ["x"], ["s"], domain="own"),
        helper.make_node("HardSwish", ["s"], ["y"]),
    ]
    model = model_of(nodes, values("x", shape=(4,)), values("y"))
    model.functions.append(square)
    model.opset_import.append(helper.make_opsetid("own", 1))
    found = agree(model, {"x": RNG.standard_normal(4).astype(np.float32)})
    assert "HardSwish" not in found
    assert found["Mul"] >= 2


def test_operators_that_are_lacking_are_named_by_their_nodes():
    nodes = [helper.make_node("Det", ["x"], ["d"], "first"), helper.make_node("Det", ["x"], ["y"])]
    model = model_of(nodes, values("x", shape=(2, 2)), values("d y"))
    assert unsupported(simplified(model, PLAIN), PLAIN) == {"Det": ["first", "y"]}


def test_sums_of_several_tensors_are_additions():
    node = helper.make_node("Sum", ["x", "x", "b"], ["s"])
    model = model_of([node], values("x", shape=(2, 3)), values("s"),
                     {"b": np.array([1, 2, 4], np.float32)}, opset=9)  # fmt: skip
    assert agree(model, {"x": RNG.standard_normal((2, 3)).astype(np.float32)}) == {"Add": 2}
