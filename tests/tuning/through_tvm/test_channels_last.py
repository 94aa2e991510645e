"""Images with channels last: what is computed stays, and few transpositions are left."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_networks import saved

pytest.importorskip("tvm", reason="TVM is an optional extra: pip install 'go_rl[tvm]'")

from go_rl.tuning.tvm.channels_last import channels_last
from go_rl.tuning.tvm.codegen import levels_here
from go_rl.tuning.tvm.models.onnx_file import read_network

pytestmark = pytest.mark.skipif(not levels_here(), reason="not an x86-64 of level 2 or more")
RNG = np.random.default_rng(2)


def network(tmp_path, nodes: list[onnx.NodeProto], weights: dict[str, tuple[int, ...]]):
    """A network of ``x``, [1, 3, 12, 12], to ``y``."""
    initial = [
        numpy_helper.from_array(RNG.standard_normal(shape).astype(np.float32), name)
        for name, shape in weights.items()
    ]
    graph = helper.make_graph(
        nodes, "net", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 12, 12])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], initial,
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    return read_network(saved(model, tmp_path / "net.onnx"))


def convolution(source: str, weight: str, result: str) -> onnx.NodeProto:
    return helper.make_node("Conv", [source, weight], [result], pads=[1, 1, 1, 1])


def transpositions(module) -> int:
    return str(module["main"]).count("R.permute_dims")


def test_between_convolutions_nothing_is_transposed(tmp_path):
    """One transposition of the image, one of each kernel, and one of the result."""
    from tvm.relax import transform

    nodes = [
        convolution("x", "w0", "a"), helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("MaxPool", ["b"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        convolution("p", "w1", "c"), helper.make_node("Add", ["c", "p"], ["d"]),
        helper.make_node("Concat", ["d", "p"], ["e"], axis=1),
        convolution("e", "w2", "y"),
    ]  # fmt: skip
    net = network(tmp_path, nodes, {"w0": (8, 3, 3, 3), "w1": (8, 8, 3, 3), "w2": (4, 16, 3, 3)})
    module = transform.DeadCodeElimination()(channels_last(net.relax()))
    assert str(module["main"]).count('data_layout="NHWC"') == 3
    assert transpositions(module) == 1 + 3 + 1
