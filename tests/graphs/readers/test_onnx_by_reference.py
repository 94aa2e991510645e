"""ONNX files read without the bytes of their arrays."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_models import parsed

from go_rl.core import ReadError
from go_rl.graphs.readers.onnx.by_reference import load_by_reference
from go_rl.graphs.readers.onnx.load import load_frugally, load_header, load_whole


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


def test_a_large_array_becomes_a_reference_into_its_file(path):
    found, whole = load_by_reference(path), load_whole(path)
    large = found.graph.initializer[0]
    assert not large.raw_data
    place = {entry.key: entry.value for entry in large.external_data}
    assert (place["location"], place["length"]) == ("m.onnx", "80000")
    begin = int(place["offset"])
    assert path.read_bytes()[begin : begin + 80000] == whole.graph.initializer[0].raw_data
    for field in ("data_location", "external_data"):
        large.ClearField(field)
    large.raw_data = whole.graph.initializer[0].raw_data
    assert found == whole


def test_a_file_put_together_from_parts_is_merged(path):
    more = onnx.ModelProto()
    more.graph.initializer.append(numpy_helper.from_array(np.ones(3000), "more"))
    path.write_bytes(path.read_bytes() + more.SerializeToString())
    found = load_by_reference(path).graph.initializer
    assert [tensor.name for tensor in found] == ["large", "small", "typed", "more"]
    assert [bool(tensor.external_data) for tensor in found] == [True, False, False, True]


def test_the_header_is_the_same(path, monkeypatch):
    before = load_header(path)
    monkeypatch.setattr("go_rl.graphs.readers.onnx.load.WHOLE_BYTES", 0)
    assert load_frugally(path).graph.initializer[0].external_data
    assert load_header(path) == before


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
