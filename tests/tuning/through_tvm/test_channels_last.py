"""Images with channels last: what is computed stays, and few transpositions are left."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_networks import saved

pytest.importorskip("tvm", reason="TVM is an optional extra: pip install 'go_rl[tvm]'")

from go_rl.tuning.tvm.channels_last import channels_last
from go_rl.tuning.tvm.codegen import CodeTarget, levels_here
from go_rl.tuning.tvm.compiled import export_network, max_relative_error, run_network
from go_rl.tuning.tvm.lowering import lower
from go_rl.tuning.tvm.models.onnx_file import OnnxNetwork, read_network

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


def everything(tmp_path) -> OnnxNetwork:
    """What sinks, and what does not: a transposed convolution, sums of three, normalisation over
    channels, a channel shuffle, a mean that leaves the layout."""
    node = helper.make_node
    nodes = [
        convolution("x", "w0", "a"), node("Dropout", ["a"], ["ad"]), node("Relu", ["ad"], ["b"]),
        node("MaxPool", ["b"], ["p"], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
        convolution("p", "w1", "c"), node("Add", ["c", "bias"], ["d"]),
        node("Concat", ["p", "d"], ["e"], axis=1),
        node("Reshape", ["e", "groups"], ["g0"]), node("Transpose", ["g0"], ["g1"],
                                                      perm=[0, 2, 1, 3, 4]),
        node("Reshape", ["g1", "whole"], ["g2"]), convolution("g2", "w2", "f"),
        node("Sum", ["f", "p", "d"], ["s"]), node("LRN", ["s"], ["l"], size=3),
        node("Pad", ["l", "around"], ["q"]),
        node("AveragePool", ["q"], ["r"], kernel_shape=[2, 2], strides=[2, 2]),
        node("ConvTranspose", ["r", "w3"], ["t"], strides=[2, 2]), convolution("t", "w4", "u"),
        node("ReduceMean", ["u"], ["v"], axes=[2, 3], keepdims=1), node("Mul", ["u", "v"], ["m"]),
        node("Softmax", ["m"], ["n"], axis=1), node("GlobalAveragePool", ["n"], ["o"]),
        node("Flatten", ["o"], ["k"]), node("Transpose", ["m"], ["mt"], perm=[0, 2, 3, 1]),
        node("ReduceMean", ["mt"], ["mm"], axes=[1, 2], keepdims=0),
        node("Add", ["k", "mm"], ["y"]),
    ]  # fmt: skip
    numbers = {
        "groups": [1, 2, 8, 6, 6], "whole": [1, 16, 6, 6], "around": [0, 0, 1, 1, 0, 0, 1, 1],
    }  # fmt: skip
    nodes = [
        *(node("Constant", [], [name], value_ints=given) for name, given in numbers.items()),
        *nodes,
    ]
    weights = {"w0": (8, 3, 3, 3), "w1": (8, 8, 3, 3), "bias": (8, 1, 1), "w2": (8, 16, 3, 3),
               "w3": (8, 4, 2, 2), "w4": (4, 4, 3, 3)}  # fmt: skip
    return network(tmp_path, nodes, weights)


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


def test_regions_that_cannot_be_converted_stay_and_the_network_computes_the_same(tmp_path):
    net = everything(tmp_path)
    lowered = lower(net, CodeTarget("x86-64-v2"))
    assert {each.title.split()[0].partition("_")[0] for each in lowered.tuned} == {"conv2d"}
    export_network(lowered, {}, tmp_path / "module.so")
    operands = [each.random(RNG) for each in net.inputs]
    found = run_network(tmp_path / "module.so", operands)
    assert max_relative_error(found, net.results(operands)) < 1e-5
