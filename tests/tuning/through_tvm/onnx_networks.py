"""Small ONNX networks."""

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def two_layers(dtype: type = np.float32) -> onnx.ModelProto:
    """``relu(x @ a + b) @ c`` of (batch, 8) by 16 by 4."""
    rng = np.random.default_rng(0)
    weights = {"a": (8, 16), "b": (16,), "c": (16, 4)}
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    nodes = [
        helper.make_node("Gemm", ["x", "a", "b"], ["h"]),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("MatMul", ["r", "c"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes, "two_layers",
        [helper.make_tensor_value_info("x", kind, ["batch", 8])],
        [helper.make_tensor_value_info("y", kind, ["batch", 4])],
        [numpy_helper.from_array(rng.standard_normal(shape).astype(dtype), name)
         for name, shape in weights.items()],
    )  # fmt: skip
    return _model(graph)


def lone(op: str) -> onnx.ModelProto:
    """One operator on four numbers."""
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in "xy"]
    node = helper.make_node(op, ["x"], ["y"], name="only")
    return _model(helper.make_graph([node], "lone", values[:1], values[1:]))


def convolutions() -> onnx.ModelProto:
    """Twice the same convolution with batch normalisation, then a sum."""
    rng = np.random.default_rng(1)
    weights = {name: rng.standard_normal((4, 4, 3, 3)).astype(np.float32) for name in ("k0", "k1")}
    for i in range(2):
        for name in ("scale", "shift", "mean", "variance"):
            weights[f"{name}{i}"] = (rng.random(4) + 0.5).astype(np.float32)
    nodes = []
    for i, (before, after) in enumerate((("x", "m"), ("m", "y"))):
        nodes += [
            helper.make_node("Conv", [before, f"k{i}"], [f"c{i}"], pads=[1, 1, 1, 1]),
            helper.make_node(
                "BatchNormalization",
                [f"c{i}", f"scale{i}", f"shift{i}", f"mean{i}", f"variance{i}"], [f"n{i}"],
            ),
            helper.make_node("Relu", [f"n{i}"], [after]),
        ]  # fmt: skip
    values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, 4, 6, 6]) for n in "xy"]
    initial = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    return _model(helper.make_graph(nodes, "convolutions", values[:1], values[1:], initial))


def saved(model: onnx.ModelProto, path: Path) -> Path:
    """Write a network; returns its path."""
    onnx.save(model, str(path))
    return path


def _model(graph: onnx.GraphProto) -> onnx.ModelProto:
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
