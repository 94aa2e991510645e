"""ONNX files as TVM gets them."""

import os
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx_networks import lone, saved, two_layers

from go_rl.core import ReadError
from go_rl.graphs.tables import names
from go_rl.tuning.config import TuningError
from go_rl.tuning.tvm.models.model import ModelInput
from go_rl.tuning.tvm.models.onnx_file import read_network
from go_rl.tuning.tvm.models.onnx_simplified import simplified, unsupported


def test_symbolic_dimensions_get_their_sizes(tmp_path):
    path = saved(two_layers(), tmp_path / "mlp.onnx")
    network = read_network(path, {"batch": 3})
    assert network.name == "mlp"
    assert network.inputs == (ModelInput("x", (3, 8), "float32"),)
    with pytest.raises(ReadError, match="give --dim 'batch=<size>'"):
        read_network(path)
    with pytest.raises(ReadError, match="did you mean 'batch'"):
        read_network(path, {"batsh": 3})


def test_other_types_than_float32_are_refused(tmp_path):
    for dtype in (np.float16, np.float64):
        path = saved(two_layers(dtype), tmp_path / f"{np.dtype(dtype).name}.onnx")
        with pytest.raises(TuningError, match=r"'x' is .*; only float32 networks are tuned"):
            read_network(path, {"batch": 1})


def test_no_network_is_named(tmp_path):
    broken, empty = tmp_path / "broken.onnx", lone("Relu")
    broken.write_bytes(b"\xff\xff nothing")
    del empty.graph.node[:]
    with pytest.raises(TuningError, match="not an ONNX model"):
        read_network(broken)
    with pytest.raises(TuningError, match="cannot be read"):
        read_network(tmp_path / "absent.onnx")
    with pytest.raises(TuningError, match="has no operators"):
        read_network(saved(empty, tmp_path / "empty.onnx"))


def test_no_more_is_read_of_weights_than_they_hold(tmp_path):
    path = tmp_path / "mlp.onnx"
    onnx.save(two_layers(), path, save_as_external_data=True, location="w.bin", size_threshold=0)
    model = onnx.load(path, load_external_data=False)
    for tensor in model.graph.initializer:
        for entry in tensor.external_data:
            if entry.key == "length":
                entry.value = str(6 << 30)
    path.write_bytes(model.SerializeToString())
    os.truncate(tmp_path / "w.bin", 6 << 30)
    whole = {each.name: each.raw_data for each in two_layers().graph.initializer}
    found = read_network(path, {"batch": 3}).model.graph.initializer
    assert {each.name: each.raw_data for each in found} == whole


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
