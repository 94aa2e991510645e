"""SqueezeNet 1.1 (Iandola et al., 2016) with the same weights as an ONNX model and a JAX function.
One image of 128 x 128."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from experiments.tuning.networks import FIRES, SqueezeNet

SIDE = 128
SHAPE = (1, 3, SIDE, SIDE)
"""Of the image: channels first, as ONNX has it."""


def _weights() -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield random kernels (filters, channels, side, side) and biases, convolution by
    convolution."""
    rng, sizes, channels = np.random.default_rng(0), [(64, 3, 3)], 64
    for squeeze, _ in FIRES:
        wide = 4 * squeeze
        sizes += [(squeeze, channels, 1), (wide, squeeze, 1), (wide, squeeze, 3)]
        channels = 2 * wide
    for filters, inputs, side in (*sizes, (1000, channels, 1)):
        scale = np.float32(np.sqrt(2.0 / (inputs * side * side)))
        bias = rng.standard_normal(filters, np.float32) * np.float32(0.1)
        yield rng.standard_normal((filters, inputs, side, side), np.float32) * scale, bias


def jax_function() -> Callable[[Any], Any]:
    """Return the function of an image of `SHAPE`; the weights are constants of it. Inside it has
    (batch, rows, columns, channels), which is what XLA computes fastest on CPUs."""
    layers = {
        f"Conv_{i}": {"kernel": kernel.transpose(2, 3, 1, 0), "bias": bias}
        for i, (kernel, bias) in enumerate(_weights())
    }
    return lambda image: SqueezeNet().apply({"params": layers}, image.transpose(0, 2, 3, 1))


def onnx_network() -> onnx.ModelProto:
    """Return the model."""
    kernels, weights = _weights(), list[onnx.TensorProto]()
    nodes: list[onnx.NodeProto] = []

    def node(op: str, *inputs: str, **attributes: Any) -> str:
        name = f"{op.lower()}{len(nodes)}"
        nodes.append(helper.make_node(op, list(inputs), [name], name=name, **attributes))
        return name

    def conv(x: str, stride: int = 1) -> str:
        """The next convolution, of an image that keeps its size unless there is a stride."""
        arrays = next(kernels)
        stored = [numpy_helper.from_array(a, f"w{len(weights) + i}") for i, a in enumerate(arrays)]
        weights.extend(stored)
        pads = [arrays[0].shape[-1] // 2 if stride == 1 else 0] * 4
        y = node("Conv", x, *(each.name for each in stored), pads=pads, strides=[stride] * 2)
        return node("Relu", y)

    x = conv("image", stride=2)
    for _, pooled in FIRES:
        x = node("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2]) if pooled else x
        x = conv(x)
        x = node("Concat", conv(x), conv(x), axis=1)
    result = node("Flatten", node("GlobalAveragePool", conv(x)))
    graph = helper.make_graph(
        nodes, "squeezenet",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, list(SHAPE))],
        [helper.make_tensor_value_info(result, TensorProto.FLOAT, [1, 1000])], weights,
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
