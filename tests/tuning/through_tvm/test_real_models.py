"""Real models are compiled with a random candidate of every operator that is tuned, and compute
what the model does, by ONNX Runtime or XLA (slow)."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from go_rl.tuning.tvm.codegen import code_target, levels_here
from go_rl.tuning.tvm.compiled import export_network, max_relative_error, run_network
from go_rl.tuning.tvm.lowering import lower
from go_rl.tuning.tvm.models.read_model import read_model

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # of TVM
    pytest.mark.skipif(not levels_here(), reason="not an x86-64 of level 2 or more"),
]
AGREE = 1e-3
"""Largest relative error: sums are rounded in another order, layer after layer."""
LIGHT = ("bvlc_alexnet", "densenet121", "inception_v1", "inception_v2", "resnet50", "shufflenet",
         "squeezenet", "vgg19", "zfnet512")  # fmt: skip
"""Files that the package onnx holds, their weights constant numbers; here they are random."""
ZOO = ("bert-mini", "bert-tiny", "deep-autoencoder", "mobilenet-v1", "mobilenet-v2",
       "mobilenet-v3-small", "ncf", "resnet18", "resnet34", "wavenet-1x10")  # fmt: skip


@pytest.mark.parametrize("name", [*(f"light {x}" for x in LIGHT), *(f"zoo:{x}" for x in ZOO)])
def test_a_real_model_is_compiled_and_right(tmp_path, name):
    pytest.importorskip("tvm", reason="TVM is an optional extra: pip install 'go_rl[tvm]'")
    source = name
    if not name.startswith("zoo:"):
        pytest.importorskip("onnxruntime", reason="ONNX Runtime computes what is right")
        source = str(tmp_path / "light.onnx")
        onnx.save(light_model(name.removeprefix("light ")), source)
    network, rng = read_model(source), np.random.default_rng(0)
    lowered = lower(network, code_target())
    drawn = {number: space.draw(1, rng) for number, space in lowered.spaces.items()}
    chosen = {number: found[0] for number, found in drawn.items() if found}
    assert chosen
    path = tmp_path / "module.so"
    export_network(lowered, chosen, path)
    operands = [each.random(rng) for each in network.inputs]
    error = max_relative_error(run_network(path, operands), network.results(operands))
    assert np.isfinite(error)
    assert error < AGREE


def light_model(name: str) -> onnx.ModelProto:
    """Return a light model with random weights, of the variance of He et al. (2015)."""
    folder = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
    model = onnx.load(str(folder / f"light_{name}.onnx"))
    graph, rng = model.graph, np.random.default_rng(0)
    shapes = {x.name: numpy_helper.to_array(x) for x in graph.initializer}
    deviations = {x.input[4] for x in graph.node if x.op_type == "BatchNormalization"}
    for number, node in enumerate(graph.node):
        if node.op_type != "ConstantOfShape" or node.input[0] not in shapes:
            continue
        shape = tuple(int(size) for size in shapes[node.input[0]])
        made = 0.1 * rng.standard_normal(shape)
        if len(shape) > 1:
            made *= 10 * np.sqrt(2 / np.prod(shape[1:]))
        if node.output[0] in deviations or len(shape) == 1:
            made = np.abs(made) + (0.5 if node.output[0] in deviations else 0)
        tensor = numpy_helper.from_array(made.astype(np.float32))
        constant = helper.make_node("Constant", [], list(node.output), value=tensor)
        graph.node[number].CopyFrom(constant)
    return model
