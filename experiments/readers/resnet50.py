"""ResNet-50 v1.5 as an ONNX file: the real network, with seeded random weights.

Source: He et al. 2016, "Deep Residual Learning for Image Recognition", table 1; v1.5 is the common
variant with the stride in the 3x3 convolution. Batch normalisation is kept as operators.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from go_rl.core.files.whole_file import write_bytes

STAGES = ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2))
"""(inner channels, blocks, stride of the first block) of each stage."""
EXPANSION = 4
CLASSES = 1000
IMAGE = 224
OPSET = 17


@dataclass
class _Network:
    """The graph under construction."""

    rng: np.random.Generator
    weights: bool
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    initializers: list[onnx.TensorProto] = field(default_factory=list)

    def operator(self, op: str, name: str, inputs: list[str], **attributes: Any) -> str:
        output = f"{name}_out"
        self.nodes.append(helper.make_node(op, inputs, [output], name=name, **attributes))
        return output

    def weight(self, name: str, shape: tuple[int, ...], scale: float, shift: float = 0.0) -> str:
        if self.weights:
            data = self.rng.standard_normal(shape, np.float32) * np.float32(scale)
            tensor = numpy_helper.from_array(data + np.float32(shift), name)
        else:
            tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=shape)
            tensor.data_location = TensorProto.EXTERNAL
            tensor.external_data.add(key="location", value="resnet50.weights")
        self.initializers.append(tensor)
        return name

    def conv_norm(self, name: str, x: str, sizes: tuple[int, int, int], stride: int) -> str:
        """Convolution (inputs, outputs, kernel width) and batch normalisation."""
        inputs, outputs, width = sizes
        scale = math.sqrt(2.0 / (inputs * width * width))
        kernel = self.weight(f"{name}.weight", (outputs, inputs, width, width), scale)
        pads, strides = [width // 2] * 4, [stride] * 2
        shape = [width, width]
        y = self.operator("Conv", name, [x, kernel], kernel_shape=shape, pads=pads, strides=strides)
        moments = (("scale", 0.1, 1.0), ("bias", 0.1, 0.0), ("mean", 0.1, 0.0), ("var", 0.0, 1.0))
        parameters = [self.weight(f"{name}.bn.{n}", (outputs,), *moment) for n, *moment in moments]
        return self.operator("BatchNormalization", f"{name}.bn", [y, *parameters])

    def relu(self, name: str, x: str) -> str:
        return self.operator("Relu", name, [x])

    def bottleneck(self, name: str, x: str, inputs: int, inner: int, stride: int) -> str:
        outputs = EXPANSION * inner
        y = self.conv_norm(f"{name}.conv1", x, (inputs, inner, 1), 1)
        y = self.relu(f"{name}.relu1", y)
        y = self.conv_norm(f"{name}.conv2", y, (inner, inner, 3), stride)
        y = self.relu(f"{name}.relu2", y)
        y = self.conv_norm(f"{name}.conv3", y, (inner, outputs, 1), 1)
        if inputs != outputs or stride != 1:
            x = self.conv_norm(f"{name}.downsample", x, (inputs, outputs, 1), stride)
        y = self.operator("Add", f"{name}.add", [y, x])
        return self.relu(f"{name}.relu3", y)


def resnet50_model(weights: bool = True) -> onnx.ModelProto:
    """Return ResNet-50 v1.5 with 25.6 M parameters, of one image: 175 operators, 4.1 G
    multiply-adds, which are 8.2 GFLOP with the padding of the convolutions, 7.96 as XLA counts,
    without.

    Args:
        weights: False stores headers that point to an absent external file, for tests.
    """
    net = _Network(np.random.default_rng(0), weights)
    x = net.conv_norm("conv1", "image", (3, 64, 7), 2)
    x = net.relu("relu1", x)
    pool: dict[str, Any] = {"kernel_shape": [3, 3], "pads": [1] * 4, "strides": [2, 2]}
    x = net.operator("MaxPool", "maxpool", [x], **pool)
    channels = 64
    for s, (inner, blocks, first_stride) in enumerate(STAGES, start=1):
        for b in range(blocks):
            stride = first_stride if b == 0 else 1
            x = net.bottleneck(f"layer{s}.{b}", x, channels, inner, stride)
            channels = EXPANSION * inner
    x = net.operator("GlobalAveragePool", "avgpool", [x])
    x = net.operator("Flatten", "flatten", [x], axis=1)
    matrix = net.weight("fc.weight", (CLASSES, channels), math.sqrt(1.0 / channels))
    bias = net.weight("fc.bias", (CLASSES,), 0.0)
    net.nodes.append(helper.make_node("Gemm", [x, matrix, bias], ["logits"], name="fc", transB=1))
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, IMAGE, IMAGE])
    logits = helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, CLASSES])
    graph = helper.make_graph(net.nodes, "resnet50", [image], [logits], net.initializers)
    opset = [helper.make_opsetid("", OPSET)]
    return helper.make_model(graph, producer_name="go_rl", opset_imports=opset, ir_version=8)


def write_resnet50_onnx(path: str | Path, weights: bool = True) -> Path:
    """Write `resnet50_model` to ``path``, about 102 MB (100 KB without weights), and return it.

    The shapes of all tensors are stored with it. The file is written under another name and
    renamed, so that a stopped run leaves none cut off.
    """
    path = Path(path)
    model = resnet50_model(weights)
    whole = onnx.shape_inference.infer_shapes(model, strict_mode=True)
    write_bytes(path, whole.SerializeToString())
    return path


if __name__ == "__main__":
    print(write_resnet50_onnx(sys.argv[1] if len(sys.argv) > 1 else "resnet50.onnx"))
