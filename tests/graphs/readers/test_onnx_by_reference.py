"""ONNX files read without the bytes of their arrays."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_models import parsed

from go_rl.core import ReadError
from go_rl.graphs.readers.onnx.by_reference import load_by_reference


@pytest.fixture
def path(tmp_path):
    """A product with a large array, a small one, and one that is not raw."""
    rng = np.random.default_rng(0)
    stored = [numpy_helper.from_array(rng.standard_normal((100, 100)), "large"),
              numpy_helper.from_array(rng.standard_normal(100), "small"),
              helper.make_tensor("typed", TensorProto.DOUBLE, [100], [0.5] * 100)]  # fmt: skip
    text = """(double[100] x) => (double[100] y)
        { a = MatMul(x, large) y = Sum(a, small, typed) }"""
    made = parsed(text, *stored)
    made.doc_string = "kept"
    onnx.save(made, tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


@pytest.mark.parametrize("change", [
    lambda data: data[: len(data) // 2], lambda data: data[:-1], lambda data: b"\xff" * 30,
    lambda data: b"\x0b" + data, lambda data: b"",
])  # fmt: skip
def test_what_is_no_model_is_refused(path, change):
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(ReadError, match=r"m.onnx: not an ONNX model, or cut off \("):
        load_by_reference(path)
    path.unlink()
    with pytest.raises(ReadError, match="cannot be read"):
        load_by_reference(path)
