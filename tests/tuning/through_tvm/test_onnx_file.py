"""ONNX files that are tuned, and what is refused before TVM sees it."""

import os

import numpy as np
import onnx
import pytest
from onnx_networks import lone, saved, two_layers

from go_rl.core import ReadError
from go_rl.tuning.config import TuningError
from go_rl.tuning.tvm.models.model import ModelInput
from go_rl.tuning.tvm.models.onnx_file import read_network


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
