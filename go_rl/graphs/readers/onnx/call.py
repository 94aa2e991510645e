"""One operator with the static types of its operands, the input of every cost rule."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import TensorProto

from go_rl.core.errors import ReadError
from go_rl.core.graph.element_type import element_type
from go_rl.graphs.readers.cost import Tensor
from go_rl.graphs.readers.cost_rules import Operator

_BITS = {"BOOL": 8, "STRING": 8, "FLOAT": 32, "DOUBLE": 64, "UNDEFINED": 0}
"""Bits of the element types whose names do not begin with letters and this number."""


@functools.cache
def itemsize(element: int) -> float:
    """Return the bytes of one element of ONNX element type ``element`` (a string counts as 1).

    Raises:
        ReadError: ONNX has no such type.
    """
    if element not in TensorProto.DataType.values():
        raise ReadError(f"a tensor is of element type {element}, which ONNX does not have")
    name = TensorProto.DataType.Name(element)
    return (_BITS[name] if name in _BITS else int(re.findall(r"\d+", name)[0])) / 8


def typed_tensor(shape: tuple[int, ...], element: int) -> Tensor:
    """Return a tensor of ONNX element type ``element``.

    Raises:
        ReadError: ONNX has no such type.
    """
    width = itemsize(element)
    return Tensor(shape, width, element_type(TensorProto.DataType.Name(element)))


@dataclass(frozen=True)
class Call(Operator):
    """One operator: its attributes and the types of its operands and results."""

    op: str
    """Operator type, prefixed by its domain unless that is the default one."""
    version: int
    """Opset version of its domain."""
    where: str
    """Name and place, for messages."""
    attributes: Mapping[str, Any]
    inputs: tuple[Tensor | None, ...]
    """Operands by position; None where one is left out."""
    outputs: tuple[Tensor | None, ...]
    """Results by position; None where one is left out."""
    arrays: tuple[np.ndarray | None, ...] = ()
    """Values of the operands that are small constants, by position; None for the others."""
    parameters: Tensor | None = None
    """All learned parameters in attributes (``ai.onnx.ml``), as one array."""

    def has(self, position: int) -> bool:
        """True when operand ``position`` is given."""
        return position < len(self.inputs) and self.inputs[position] is not None

    def integer(self, position: int, default: int) -> int:
        """Return the value of operand ``position``, or ``default`` where it is left out.

        Raises:
            ReadError: it is given and not a constant.
        """
        if not self.has(position):
            return default
        array = self.arrays[position] if position < len(self.arrays) else None
        if array is None or array.size != 1:
            raise ReadError(
                f"{self.where}: operand {position} must be one constant whole number; its value "
                "is not known"
            )
        return int(array.reshape(-1)[0])

    def operand(self, position: int = 0) -> Tensor:
        """Return operand ``position``; a `ReadError` when it is left out."""
        tensor = self.inputs[position] if position < len(self.inputs) else None
        if tensor is None:
            raise ReadError(f"{self.where}: operand {position} is missing")
        return tensor

    @property
    def result(self) -> Tensor:
        """The first result that is given."""
        for tensor in self.outputs:
            if tensor is not None:
                return tensor
        raise ReadError(f"{self.where}: the operator has no result")

    def get(self, attribute: str, default: Any) -> Any:
        """Return an attribute, text as `str`, or ``default``."""
        found = self.attributes.get(attribute, default)
        return found.decode() if isinstance(found, bytes) else found


def no_bytes(call: Call) -> float:
    """Return 0: the results are operands by another name."""
    return 0.0


def default_bytes(call: Call) -> float:
    """Return the bytes of all operands and results: XLA's rule for most operators."""
    tensors = (*call.inputs, *call.outputs)
    return float(sum(t.nbytes for t in tensors if t is not None))
