"""Static tensor types in ONNX's own form."""

from __future__ import annotations

from collections.abc import Iterable

import onnx


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
