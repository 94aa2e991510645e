"""Shape arithmetic of ONNX models: which operators are folded to constants, and their values.

Exporters compute shapes with little integer graphs (Shape, Gather, Concat, ...). Once the inputs
are static these are constants. Only operators that shape arithmetic uses are folded, and only
while every array stays under `MAX_ELEMENTS`.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from go_rl.graphs.tables import names

MAX_ELEMENTS = 4096
"""Arrays with more elements are data, not shape arithmetic."""

FILLED = "go_rl: one number"
"""Text of a folded array that holds one number many times, and need not be stored as an array."""
FOLDABLE = names(
    "Abs Add And ArgMax ArgMin Cast CastLike Ceil Clip Compress Concat ConstantOfShape CumSum Div"
    " Equal Exp Expand Flatten Floor Gather GatherElements GatherND Greater GreaterOrEqual Identity"
    " IsInf IsNaN Less LessOrEqual Log Max Mean Min Mod Mul Neg NonZero Not Or Pow Range Reciprocal"
    " ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum Relu Reshape Round ScatterElements"
    " ScatterND Shape Sign Size Slice Split Sqrt Squeeze Sub Sum Tile TopK Transpose Unsqueeze"
    " Where Xor"
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
) -> list[np.ndarray] | str:
    """Return the results of ``node`` on constant ``inputs``; text: why they are not computed."""
    if node.op_type not in FOLDABLE or node.domain not in ("", "ai.onnx"):
        return "is none of the operators that are evaluated while a model is read"
    too_large = f"gives more than the {MAX_ELEMENTS:,} elements that are evaluated"
    if not result_elements(node.op_type, inputs) <= MAX_ELEMENTS:  # NaN is no bound either
        return too_large
    if node.op_type == "Split" and not all(0 < a.i <= MAX_ELEMENTS for a in _counts(node)):
        return too_large
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
            arrays = _reference(node, inputs, opsets)
    except Exception as error:  # the Python reference raises freely; the refusal repeats it
        lines = str(error).strip().splitlines() or [""]
        return f"cannot be evaluated ({type(error).__name__}: {lines[0][:120]})"
    return arrays if all(a.size <= MAX_ELEMENTS for a in arrays) else too_large


def _reference(
    node: onnx.NodeProto, inputs: Sequence[np.ndarray | None], opsets: dict[str, int]
) -> list[np.ndarray]:
    """Return the results in order, an empty array for one without a name.

    The node is wrapped in a graph: for a lone node, the reference evaluator ignores ``opsets``
    and takes the newest version of the operator.
    """
    from onnx.reference import ReferenceEvaluator

    alone = onnx.NodeProto()
    alone.CopyFrom(node)
    alone.domain = ""
    results = [name or f"go_rl_unread_{i}" for i, name in enumerate(node.output)]
    del alone.output[:]
    alone.output.extend(results)
    feeds: dict[str, Any] = {n: x for n, x in zip(node.input, inputs, strict=True) if n}
    graph = onnx.GraphProto(
        node=[alone],
        input=[onnx.ValueInfoProto(name=name) for name in feeds],
        output=[onnx.ValueInfoProto(name=name) for name in results],
    )
    evaluator = ReferenceEvaluator(graph, opsets={"": opsets.get("", 1)})
    return [np.asarray(found) for found in evaluator.run(None, feeds)]  # type: ignore[arg-type]


def _counts(node: onnx.NodeProto) -> list[onnx.AttributeProto]:
    return [a for a in node.attribute if a.name == "num_outputs"]


_CONSTANT_TYPES = {
    **dict.fromkeys(("value_float", "value_floats"), np.float32),
    **dict.fromkeys(("value_int", "value_ints"), np.int64),
}
"""Element types of a `Constant` by the attribute that holds numbers; others hold texts."""


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
        dtype = _CONSTANT_TYPES.get(attribute.name, object)
        value = onnx.helper.get_attribute_value(attribute)
        tensor = numpy_helper.from_array(np.array(value, dtype))
    tensor.name = node.output[0]
    return tensor


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


def is_filled(array: np.ndarray) -> bool:
    """Return whether all elements of an array are the same number."""
    return array.size > 1 and bool((array == array.flat[0]).all())


def why_no_value(tensor: onnx.TensorProto) -> str:
    """Return why `small_value` has no array of a tensor, to follow its name."""
    if math.prod(tensor.dims) > MAX_ELEMENTS:
        return f"has more than the {MAX_ELEMENTS:,} elements that are evaluated"
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        named = next((e.value for e in tensor.external_data if e.key == "location"), "")
        return f"is stored outside of the model, in {named!r}, which cannot be read"
    if tensor.data_type == onnx.TensorProto.STRING:
        return "is text, which is not evaluated"
    return "is in the file without its data"
