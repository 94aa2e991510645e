"""Bad ONNX input: one clear error each."""

import pytest
from onnx_models import header, read

from experiments.readers.resnet50 import resnet50_model
from go_rl.core.errors import ReadError, UnknownOperatorError
from go_rl.graphs.readers.onnx.reader import read_onnx

pytestmark = pytest.mark.usefixtures("in_process")
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


X = "(float[2,3] x) => "
PAIR = "(float[2,3] x, float[5,4] w) => (float"
BATCH = "(float[batch,3] x) => (y) { y = Relu(x) }"
BAD_GRAPHS = {
    "no nodes": (f"{X} (float[2,3] x) {{}}", {}, "has no nodes"),
    "cycle": (f"{X} (b) {{ a = Add(x, b) [neg] b = Neg(a) }}", {}, "cycle: .*Neg '?neg"),
    "duplicate result": (
        f"{X} (y) {{ [relu] y = Relu(x) [neg] y = Neg(x) }}", {},
        r"Neg 'neg' .*produces 'y', which Relu 'relu' .*already defines",
    ),
    "undefined operand": (
        f"{X} (y) {{ [relu] y = Relu(xx) }}", {},
        r"'relu' .*reads 'xx', which nothing defines; did you mean 'x'",
    ),
    "unnamed dimension": (
        BATCH.replace("batch", "?"), {}, r"'x_0' of input 'x' \(axis 0\); give --dim 'x_0=<size>'",
    ),
    "unset dimension": (BATCH, {}, r"'batch' of input 'x'"),
    "unknown dimension": (
        BATCH, {"bath": 2}, r"no dimension 'bath' \(it has: batch\); did you mean 'batch'",
    ),
    "dimension of a static model": (
        f"{X} (y) {{ y = Relu(x) }}", {"batch": 2}, r"no dimension 'batch'",
    ),
    "size zero": (BATCH, {"batch": 0}, r"'batch' must be at least 1, not 0"),
    "input without a rank": (
        "(float[] x) => (y) { y = Relu(x) }", {}, r"input 'x' has no shape",
    ),
    "operand left out at the end": (
        f"{X} (float[2,3] y) {{ [op] y = MatMul(x) }}", {},
        r"MatMul 'op' \(graph\.node\[0\]\): operands: 1; in operator set 21 there are 2$",
    ),
    "operand left out between": (
        f'{X} (float[2,3] y) {{ [op] y = Clip("", x) }}', {}, "operand 0 is left out",
    ),
    "operand too many": (
        f"{X} (float[2,3] y) {{ [op] y = Relu(x, x) }}", {}, "operands: 2; .* there are 1$",
    ),
    "result too many": (
        f"{X} (float[2,3] y) {{ [op] y, z = Relu(x) }}", {}, "results: 2; .* 1$",
    ),
    "attribute left out": (
        f"{X} (float[4,3] y) {{ [op] y = Concat(x, x) }}", {}, "'axis' is missing",
    ),
    "product of sizes that do not fit": (
        f"{PAIR} [2,4] y) {{ [op] y = MatMul(x, w) }}", {},
        r"'op' .*\[2, 3\] and \[5, 4\] are summed over 3 and 5",
    ),
    "transposed product of sizes that do not fit": (
        f"{PAIR} [2,5] y) {{ [op] y = Gemm<transB=1>(x, w) }}", {}, "summed over 3 and 4",
    ),
    "sum of sizes that do not fit": (
        f"{PAIR} [2,3] y) {{ [op] y = Add(x, w) }}", {},
        r"\[2, 3\] and \[5, 4\] do not fit one another; the file states \[2, 3\]",
    ),
    "stated result of another size": (
        f"{X} (float[1,3] y) {{ [op] y = Mul(x, x) }}", {}, r"make \[2, 3\]; the file states \[1,",
    ),
    "operands that do not fit": (
        "(float[1,3,8,8] x, float[4,3] w) => (float[1,4,8,8] y) { [op] y = Conv(x, w) }", {},
        r"Conv 'op' \(graph\.node\[0\]\)",
    ),
    "channels that do not fit": (
        "(float[1,3,8,8] x, float[4,5,3,3] w) => (float[1,4,6,6] y) { [op] y = Conv(x, w) }", {},
        r"\[1, 3, 8, 8\] have 3 channels, its weight \[4, 5, 3, 3\] reads 5",
    ),
    "window larger than its padded data": (
        "(float[1,3,2,2] x, float[4,3,5,5] w) => (float[1,4,1,1] y)"
        " { [op] y = Conv<pads=[1,1,1,1]>(x, w) }", {}, r"reaches \[5, 5\] of \[4, 4\]",
    ),
    "result of other channels": (
        "(float[1,3,2,2] x, float[4,3,1,1] w) => (float[1,5,2,2] y) { [op] y = Conv(x, w) }", {},
        r"begins with \[1, 4\]; the file states \[1, 5, 2, 2\]",
    ),
    "curve of another size": (
        f"{X} (float[3,9] y) {{ [op] y = Relu(x) }}", {}, r"operand is \[2, 3\].*\[3, 9\]",
    ),
    "order that names a dimension twice": (
        f"{X} (float[2,2] y) {{ [op] y = Transpose<perm=[0,0]>(x) }}", {}, r"perm \[0, 0\]",
    ),
    "transposed result of another size": (
        f"{X} (float[2,3] y) {{ [op] y = Transpose(x) }}", {}, r"\[1, 0\] makes \[3, 2\]",
    ),
    "letter of two sizes": (
        f"{PAIR} [2,5] y) {{ [op] y = Einsum<equation=\"ij,kj->ik\">(x, w) }}", {},
        r"'j' of 'ij,kj->ik' is 3 and 4",
    ),
    "letters of another rank": (
        f"{PAIR} [2,5] y) {{ [op] y = Einsum<equation=\"i,kj->ik\">(x, w) }}", {},
        r"'i' of 'i,kj->ik' does not name the dimensions of \[2, 3\]",
    ),
    "joined along no axis": (
        f"{X} (float[4,3] y) {{ [op] y = Concat<axis=7>(x, x) }}", {}, "axis 7 is none of its",
    ),
    "joined operands that differ elsewhere": (
        f"{PAIR} [7,3] y) {{ [op] y = Concat<axis=0>(x, w) }}", {}, "another axis than 0",
    ),
    "joined result of another size": (
        f"{X} (float[5,3] y) {{ [op] y = Concat<axis=-2>(x, x) }}", {}, r"make \[4, 3\];",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "dims", "message"), BAD_GRAPHS.values(), ids=BAD_GRAPHS.keys())
def test_models_that_are_wrong(text, dims, message):
    with pytest.raises(ReadError, match=message):
        read(text, **dims)


def test_unknown_operators_are_named_with_their_counts():
    text = """(float[2,3] x) => (float[2,3] y)
        { a = own.Twist(x) b = own.Twist(a) [bend] y = own.Bend(b, w) }"""
    with pytest.raises(UnknownOperatorError, match=r"own\.Twist \(2\), own\.Bend \(1\)"):
        read(text, header("w", [64, 64]), domains=["own"])
