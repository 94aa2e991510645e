"""Bad ONNX input: one clear error each."""

from __future__ import annotations

import pytest
from onnx import helper
from onnx_models import header, model, one_operator, value

from go_rl.core.errors import ReadError, UnknownOperatorError
from go_rl.core.graph.op_kind import OpKind
from go_rl.graphs.readers.onnx.reader import read_onnx, read_onnx_model
from go_rl.graphs.zoo.resnet50 import resnet50_model

node = helper.make_node
WHOLE = resnet50_model(weights=False).SerializeToString()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "the file is empty"),
        (b"this is no protobuf at all", "not an ONNX model"),
        (b"\x7fELF" + bytes(100), "not an ONNX model"),
        (WHOLE[: len(WHOLE) // 2], "not an ONNX model, or cut off"),
        (None, "cannot be read"),
    ],
    ids=["empty", "text", "binary", "truncated", "absent"],
)
def test_files_that_are_no_models(tmp_path, data, message):
    path = tmp_path / "bad.onnx"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(ReadError, match=message) as caught:
        read_onnx(path)
    assert str(path) in str(caught.value)


X, Y = [value("x", [2, 3])], [value("y", [2, 3])]
RELU = node("Relu", ["x"], ["y"], name="relu")
BAD_GRAPHS = {
    "no nodes": (model([], X, X), {}, "has no nodes"),
    "cycle": (
        model([node("Add", ["x", "b"], ["a"]), node("Neg", ["a"], ["b"], name="neg")], X, ["b"]),
        {}, r"cycle: .*Neg neg|cycle: .*Neg 'neg'",
    ),
    "duplicate result": (
        model([RELU, node("Neg", ["x"], ["y"], name="neg")], X, Y), {},
        r"Neg 'neg' .*produces 'y', which Relu 'relu' .*already defines",
    ),
    "undefined operand": (
        model([node("Relu", ["xx"], ["y"], name="relu")], X, Y), {},
        r"'relu' .*reads 'xx', which nothing defines; did you mean 'x'",
    ),
    "unnamed dimension": (
        model([RELU], [value("x", [None, 3])], Y), {},
        r"'x_0' of input 'x' \(axis 0\); give --dim 'x_0=<size>'",
    ),
    "unset dimension": (model([RELU], [value("x", ["batch", 3])], Y), {}, r"'batch' of input 'x'"),
    "unknown dimension": (
        model([RELU], [value("x", ["batch", 3])], Y), {"bath": 2},
        r"no dimension 'bath' \(it has: batch\); did you mean 'batch'",
    ),
    "dimension of a static model": (model([RELU], X, Y), {"batch": 2}, r"no dimension 'batch'"),
    "size zero": (
        model([RELU], [value("x", ["batch", 3])], Y), {"batch": 0},
        r"'batch' must be at least 1, not 0",
    ),
    "input without a rank": (model([RELU], [value("x", None)], Y), {}, r"input 'x' has no shape"),
    "operands that do not fit": (
        one_operator("Conv", [[1, 3, 8, 8], [4, 3]], [[1, 4, 8, 8]]), {},
        r"Conv 'op' \(graph\.node\[0\]\)",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("built", "dims", "message"), BAD_GRAPHS.values(), ids=BAD_GRAPHS.keys())
def test_models_that_are_wrong(built, dims, message):
    with pytest.raises(ReadError, match=message):
        read_onnx_model(built, "m.onnx", dims)


def _with_unknown():
    return model(
        [
            node("Twist", ["x"], ["a"], domain="own"),
            node("Twist", ["a"], ["b"], domain="own"),
            node("Bend", ["b", "w"], ["y"], domain="own", name="bend"),
        ],
        X,
        Y,
        [header("w", [64, 64])],
        domains=["own"],
    )


def test_unknown_operators_are_named_with_their_counts():
    with pytest.raises(UnknownOperatorError, match=r"own\.Twist \(2\), own\.Bend \(1\)"):
        read_onnx_model(_with_unknown(), "m")


def test_unknown_operators_count_by_bytes_when_asked():
    graph = read_onnx_model(_with_unknown(), "m", unknown="bytes")
    bend = graph.index["bend"]
    assert graph.kind[bend] == OpKind.OTHER
    assert graph.flops.sum() == 0
    assert graph.bytes_accessed[bend] == 24 + 24 + 64 * 64 * 4
    assert "own.Twist (2)" in graph.meta["notes"][0]
