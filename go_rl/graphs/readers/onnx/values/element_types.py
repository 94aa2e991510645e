"""Element types in which ONNX operators compute: quantised products in those of their matrices."""

from __future__ import annotations

from collections.abc import Sequence

from go_rl.core.graph.element_type import PRODUCTS, ElementType
from go_rl.core.graph.op_kind import OpKind
from go_rl.graphs.readers.onnx.call import Call
from go_rl.graphs.readers.onnx.values.value import OnnxValue
from go_rl.graphs.readers.tensor import type_computed_in

DEQUANTIZERS = ("DequantizeLinear", "com.microsoft.DequantizeLinear")
QUANTISED = {ElementType.INT8, ElementType.INT4, ElementType.FLOAT8}
"""Types of matrices that products read as they are."""


def stored_type(call: Call) -> ElementType:
    """Type of what a DequantizeLinear reads; unknown of other operators' results."""
    quantised = call.op in DEQUANTIZERS and call.operand().type
    return quantised or ElementType.UNKNOWN


def type_of_operator(kind: OpKind, call: Call, operands: Sequence[OnnxValue | None]) -> ElementType:
    """Type in which an operator computes: a product of quantised matrices in theirs, although the
    file makes floating-point numbers of them first, because every runtime joins the two."""
    plain = type_computed_in(kind, call.inputs, call.outputs)
    if kind not in PRODUCTS:
        return plain
    matrices = [v for v in operands if v is not None and len(v.tensor.shape) > 1]
    arriving = {_arriving_type(v) for v in matrices}
    return arriving.pop() if arriving <= QUANTISED and len(arriving) == 1 else plain


def _arriving_type(value: OnnxValue) -> ElementType:
    """Return the element type in which a value arrives: of weights, that in which they are stored;
    of quantised activations, theirs."""
    if value.weights:  # the array itself; beside it may lie scales
        return max(value.weights.values(), key=lambda tensor: tensor.size).type
    return value.stored_type or value.tensor.type
