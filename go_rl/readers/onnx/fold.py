"""Shape arithmetic of ONNX models: which operators are folded to constants, and their values.

Exporters compute shapes with little integer graphs (Shape, Gather, Concat, ...). Once the inputs
are static these are constants. Only operators that shape arithmetic uses are folded, and only
while every array stays under `MAX_ELEMENTS`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from go_rl.readers.tables import names

MAX_ELEMENTS = 4096
"""Arrays with more elements are data, not shape arithmetic."""

FOLDABLE = names(
    "Abs Add And Cast CastLike Ceil Compress Concat ConstantOfShape Div Equal Expand Flatten Floor"
    " Gather GatherElements GatherND Greater GreaterOrEqual Identity Less LessOrEqual Max Min Mod"
    " Mul Neg NonZero Not Or Pow Range ReduceMax ReduceMin ReduceProd ReduceSum Reshape Round"
    " ScatterElements ScatterND Shape Sign Size Slice Split Sqrt Squeeze Sub Tile TopK Transpose"
    " Unsqueeze Where Xor"
)
"""Operators of the default domain that shape arithmetic uses; all are pure functions."""


_SIZED_BY = names("ConstantOfShape Expand Tile")
"""Operators whose last operand is the size of the result."""
_LOOKED_UP = names("Gather GatherElements GatherND")
"""Operators that repeat parts of their first operand."""


def result_elements(op: str, inputs: Sequence[np.ndarray | None]) -> float:
    """Return an upper bound on the elements of the result, before anything is computed."""
    given = [x for x in inputs if x is not None]
    first = inputs[0]
    if first is None:
        return math.inf
    if op == "Range" and len(given) == 3:
        start, limit, delta = (float(x.reshape(-1)[0]) if x.size else math.nan for x in given)
        return abs((limit - start) / delta) + 1 if delta else math.inf
    if op in _SIZED_BY:
        sizes = given[-1].astype(np.float64).reshape(-1)
        return (1 if op == "ConstantOfShape" else first.size) * float(np.prod(np.maximum(sizes, 1)))
    if op in _LOOKED_UP:
        return float(first.size) * max(1, given[-1].size)
    rank = max(x.ndim for x in given)
    shapes = [(1,) * (rank - x.ndim) + x.shape for x in given]
    broadcast = math.prod(max(extents) for extents in zip(*shapes, strict=True))
    return float(max(broadcast, sum(x.size for x in given)))


def shape_result(node: onnx.NodeProto, shape: Sequence[int]) -> np.ndarray:
    """Return what `Shape` or `Size` gives for a tensor of static ``shape``."""
    if node.op_type == "Size":
        return np.array(math.prod(shape), np.int64)
    attributes = {a.name: a.i for a in node.attribute}
    start, end = attributes.get("start", 0), attributes.get("end", len(shape))
    return np.array(list(shape)[start:end], np.int64)


def evaluate(
    node: onnx.NodeProto, inputs: Sequence[np.ndarray | None], opsets: dict[str, int]
) -> list[np.ndarray] | None:
    """Return the results of a foldable ``node`` on constant ``inputs``; None: leave it alone."""
    if node.op_type not in FOLDABLE or node.domain not in ("", "ai.onnx"):
        return None
    if not result_elements(node.op_type, inputs) <= MAX_ELEMENTS:  # NaN is no bound either
        return None
    if node.op_type == "Split" and not all(0 < a.i <= MAX_ELEMENTS for a in _counts(node)):
        return None
    from onnx.reference import ReferenceEvaluator

    feeds: dict[str, Any] = {n: x for n, x in zip(node.input, inputs, strict=True) if n}
    try:
        with np.errstate(all="ignore"):
            results = ReferenceEvaluator(node, opsets=opsets).run(None, feeds)
    except Exception:  # the Python reference raises freely; an unfolded node is still correct
        return None
    arrays = [np.asarray(r) for r in results]  # type: ignore[arg-type]
    return arrays if all(a.size <= MAX_ELEMENTS for a in arrays) else None


def _counts(node: onnx.NodeProto) -> list[onnx.AttributeProto]:
    return [a for a in node.attribute if a.name == "num_outputs"]


def constant_tensor(node: onnx.NodeProto) -> onnx.TensorProto:
    """Return the tensor that a `Constant` node holds, whichever of its attributes carries it."""
    attribute = node.attribute[0]
    if attribute.name == "value":
        tensor = onnx.TensorProto()
        tensor.CopyFrom(attribute.t)
    elif attribute.name == "sparse_value":
        kind, dims = attribute.sparse_tensor.values.data_type, attribute.sparse_tensor.dims
        tensor = onnx.TensorProto(data_type=kind, dims=dims)
    else:
        tensor = numpy_helper.from_array(_plain_constant(attribute))
    tensor.name = node.output[0]
    return tensor


def _plain_constant(attribute: onnx.AttributeProto) -> np.ndarray:
    match attribute.name:
        case "value_float":
            return np.array(attribute.f, np.float32)
        case "value_floats":
            return np.array(attribute.floats, np.float32)
        case "value_int":
            return np.array(attribute.i, np.int64)
        case "value_ints":
            return np.array(attribute.ints, np.int64)
        case "value_string":
            return np.array(attribute.s, object)
        case _:
            return np.array(list(attribute.strings), object)


def small_value(tensor: onnx.TensorProto) -> np.ndarray | None:
    """Return the array of a small tensor whose data is at hand, else None."""
    elements = math.prod(tensor.dims)
    external = tensor.data_location == onnx.TensorProto.EXTERNAL
    if elements > MAX_ELEMENTS or external or tensor.data_type == onnx.TensorProto.STRING:
        return None
    try:
        return numpy_helper.to_array(tensor)
    except (ValueError, TypeError):  # header only, or an element type NumPy cannot hold
        return None
