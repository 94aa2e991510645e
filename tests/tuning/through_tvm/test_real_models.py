"""Real models are compiled with candidates, and compute what the model does (slow)."""

import numpy as np
import pytest

from experiments.tuning.compiled_models import compiled, names
from go_rl.tuning.tvm.codegen import levels_here

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # of exporters and of TVM
    pytest.mark.skipif(not levels_here(), reason="not an x86-64 of level 2 or more"),
]
AGREE = 1e-3
"""Largest relative error: sums are rounded in another order, layer after layer."""


@pytest.mark.parametrize("name", names())
def test_a_real_model_is_compiled_and_right(tmp_path, name):
    pytest.importorskip("tvm", reason="TVM is an optional extra: pip install 'go_rl[tvm]'")
    if not name.startswith("zoo:"):
        pytest.importorskip("onnxruntime", reason="ONNX Runtime computes what is right")
    if name.startswith("torch "):
        pytest.importorskip("torch", reason="torch exports this model: pip install torch")
        pytest.importorskip("onnxscript", reason="torch exports through it: pip install onnxscript")
    found = compiled(name, tmp_path)
    assert found.tuned + sum(found.left.values()) == found.functions
    assert found.tuned >= 1
    assert np.isfinite(found.error)
    assert found.error < AGREE
