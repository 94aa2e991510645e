"""Tensors of ONNX while a graph is walked: static types, values with the stored arrays in them, and
views: results that are their first operand by another shape or order of axes.

A runtime renames the operand of an `Identity`, a `Reshape` and the like. A transposition is a
change of layout, which costs nothing in XLA's count either; what must copy is a `Reshape` of a
tensor whose axes do not lie in memory in that order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import onnx

from go_rl.core.graph.element_type import ElementType
from go_rl.core.graph.op_kind import PRODUCT_KINDS, OpKind
from go_rl.graphs.readers.arithmetic.closed_forms import Strides, row_strides, view_strides
from go_rl.graphs.readers.cost import type_computed_in
from go_rl.graphs.readers.onnx.call import Call, Tensor, typed_tensor
from go_rl.graphs.readers.onnx.structure import check_size
from go_rl.graphs.readers.operand import Operand
from go_rl.graphs.tables import names


def static_shape(kind: onnx.TypeProto) -> tuple[int, ...] | None:
    """Return the shape of a tensor type, or None when a dimension is not a known number."""
    tensor = inner_tensor_type(kind)
    if tensor is None or not tensor.HasField("shape"):
        return None
    shape = []
    for dim in tensor.shape.dim:
        if dim.dim_value < 0 or not dim.HasField("dim_value"):
            return None
        shape.append(dim.dim_value)
    return tuple(shape)


def is_static(kind: onnx.TypeProto) -> bool:
    """True when every dimension of ``kind`` is a known number."""
    return static_shape(kind) is not None


def partial_shape(kind: onnx.TypeProto) -> tuple[int | None, ...] | None:
    """Return the shape with None for each size that is not known; None without a rank."""
    tensor = inner_tensor_type(kind)
    if tensor is None or not tensor.HasField("shape"):
        return None
    dims = tensor.shape.dim
    return tuple(
        d.dim_value if d.HasField("dim_value") and d.dim_value >= 0 else None for d in dims
    )


def tensor_type(element: int, shape: Iterable[int]) -> onnx.TypeProto:
    """Return the type of a tensor with the given ONNX element type and shape."""
    return onnx.helper.make_tensor_type_proto(element, list(shape))


def element_type(kind: onnx.TypeProto) -> int:
    """Return the ONNX element type of a tensor, sequence or optional type (0: unknown)."""
    tensor = inner_tensor_type(kind)
    return tensor.elem_type if tensor is not None else 0


def inner_tensor_type(kind: onnx.TypeProto) -> onnx.TypeProto.Tensor | None:
    """Return the tensor type in a tensor, sequence or optional type; None: there is none."""
    for _ in range(8):  # a sequence or an optional counts as one of its elements
        match kind.WhichOneof("value"):
            case "tensor_type":
                return kind.tensor_type
            case "sequence_type":
                kind = kind.sequence_type.elem_type
            case "optional_type":
                kind = kind.optional_type.elem_type
            case _:
                return None
    return None


LAYOUT_OF_WEIGHTS = names(
    "Cast CastLike DequantizeLinear Flatten Identity QuantizeLinear Reshape Squeeze Transpose"
    " Unsqueeze"
)
"""Operators that leave a weight a weight."""


def tensor_of(kind: onnx.TypeProto, name: str) -> Tensor:
    """Return a static ONNX type as a `Tensor`; a `ReadError` names one of impossible size."""
    shape = static_shape(kind) or ()
    check_size(shape, f"tensor {name!r}")
    return typed_tensor(shape, element_type(kind))


DEQUANTIZERS = ("DequantizeLinear", "com.microsoft.DequantizeLinear")
QUANTISED = {ElementType.INT8, ElementType.INT4, ElementType.FLOAT8}
"""Types of matrices that products read as they are."""


def stored_type(call: Call) -> ElementType:
    """Type of what a DequantizeLinear reads; unknown of other operators' results."""
    quantised = call.op in DEQUANTIZERS and call.operand().type
    return quantised or ElementType.UNKNOWN


def type_of_operator(kind: OpKind, call: Call, operands: Sequence[Operand | None]) -> ElementType:
    """Type in which an operator computes: a product of quantised matrices in theirs, although the
    file makes floating-point numbers of them first, because every runtime joins the two."""
    plain = type_computed_in(kind, call.inputs, call.outputs)
    if kind not in PRODUCT_KINDS:
        return plain
    matrices = [v for v in operands if v is not None and len(v.tensor.shape) > 1]
    arriving = {_arriving_type(v) for v in matrices}
    return arriving.pop() if arriving <= QUANTISED and len(arriving) == 1 else plain


def _arriving_type(value: Operand) -> ElementType:
    """Return the element type in which a value arrives: of weights, that in which they are stored;
    of quantised activations, theirs."""
    if value.weights:  # the array itself; beside it may lie scales
        return max(value.weights.values(), key=lambda tensor: tensor.size).type
    return value.stored_type or value.tensor.type


TRANSPOSITION = "Transpose"
"""View that stays a node: products of a runtime may need a copy of what it returns."""
_RESHAPES = names("Flatten Reshape Squeeze Unsqueeze")
_SAME = "Identity"
_DROPOUT = "Dropout"


def as_view(call: Call, base: Operand | None) -> Operand | None:
    """Return the result of an operator as its first operand; None: it computes or copies.

    Args:
        call: the operator.
        base: its first operand; None: it has none.
    """
    result = call.outputs[0] if call.outputs else None
    if base is None or result is None:
        return None
    viewed = replace(base, tensor=result, array=None)
    if call.op == _SAME or (call.op == _DROPOUT and _is_idle(call)):
        return viewed
    if call.op == TRANSPOSITION:
        strides = _transposed(call, base)
        return None if strides is None else replace(viewed, strides=strides)
    if call.op not in _RESHAPES:
        return None
    if base.strides is None:
        return viewed
    strides = view_strides(base.tensor.shape, base.strides, result.shape)
    return None if strides is None else replace(viewed, strides=strides)


def _transposed(call: Call, base: Operand) -> Strides:
    rank = len(base.tensor.shape)
    order = call.get("perm", None) or range(rank - 1, -1, -1)
    if sorted(order) != list(range(rank)):  # of a guessed shape
        return None
    strides = base.strides or row_strides(base.tensor.shape)
    return tuple(strides[axis] for axis in order)


def _is_idle(call: Call) -> bool:
    """Whether a `Dropout` drops nothing, and no mask is asked for."""
    if any(call.outputs[1:]):
        return False
    if call.version < 7:
        return bool(call.get("is_test", 0))
    array = call.arrays[2] if call.has(2) and len(call.arrays) > 2 else None
    return not call.has(2) or (array is not None and not array.any())
