"""`Tensor`: a static tensor type, the operand of cost rules."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from go_rl.core.graph.element_type import ElementType, computing_type
from go_rl.core.graph.op_kind import OpKind


@dataclass(frozen=True)
class Tensor:
    """A static tensor type."""

    shape: tuple[int, ...]
    itemsize: float
    """Bytes of one element; 0.5 for 4-bit types."""
    type: ElementType = ElementType.UNKNOWN

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> float:
        """Bytes of all elements."""
        return self.size * self.itemsize


def type_computed_in(
    kind: OpKind, operands: Iterable[Tensor | None], results: Iterable[Tensor | None]
) -> ElementType:
    """Return `go_rl.core.graph.element_type.computing_type` of an operator; operands and results
    that are left out are None."""
    given = [(each.type, len(each.shape)) for each in operands if each is not None]
    return computing_type(kind, given, [each.type for each in results if each is not None])
