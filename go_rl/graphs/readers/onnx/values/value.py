"""A tensor while a graph is walked: its type, its producer, and the stored arrays in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import onnx

from go_rl.core.graph.element_type import ElementType
from go_rl.graphs.readers.arithmetic.view_strides import Strides
from go_rl.graphs.readers.onnx.call import Tensor, typed_tensor
from go_rl.graphs.readers.onnx.structure import check_size
from go_rl.graphs.readers.onnx.values.types import element_type, static_shape
from go_rl.graphs.tables import names

LAYOUT_OF_WEIGHTS = names(
    "Cast CastLike DequantizeLinear Flatten Identity QuantizeLinear Reshape Squeeze Transpose"
    " Unsqueeze"
)
"""Operators that leave a weight a weight."""


@dataclass(frozen=True)
class OnnxValue:
    """A tensor during the traversal: its producer, and the weights in it."""

    tensor: Tensor
    producer: int | None = None
    """Number of the producing node; None: a weight, or a value from outside a loop's body."""
    output: int = 0
    weights: Mapping[str, Tensor] = field(default_factory=dict)
    """Stored arrays by name, when the value is a weight."""
    stored_type: ElementType = ElementType.UNKNOWN
    """Type in which the value arrives where another is made of it on the way: that of quantised
    activations, which a product reads as they are."""
    array: np.ndarray | None = None
    """Array value, when it is a small constant."""
    strides: Strides = None
    """Strides of the array in memory, where a transposition changed them."""


def tensor_of(kind: onnx.TypeProto, name: str) -> Tensor:
    """Return a static ONNX type as a `Tensor`; a `ReadError` names one of impossible size."""
    shape = static_shape(kind) or ()
    check_size(shape, f"tensor {name!r}")
    return typed_tensor(shape, element_type(kind))
