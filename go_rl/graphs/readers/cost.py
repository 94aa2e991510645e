"""`Cost`: the work of an operator, or of a whole program, as XLA's cost analysis counts it;
`Tensor`: a static tensor type, the operand of cost rules."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from go_rl.core.graph.element_type import ElementType, computing_type
from go_rl.core.graph.op_kind import OpKind


@dataclass(frozen=True)
class Cost:
    """Work on the unoptimised program."""

    flops: float = 0.0
    """FLOP; transcendental functions (exp, tanh, rsqrt, erf, …) count as none, as in XLA."""
    num_bytes: float = 0.0
    """Bytes read and written."""
    operators: int = 0
    """Operators that become nodes when a computation is inlined; counted for HLO only."""

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.flops + other.flops,
            self.num_bytes + other.num_bytes,
            self.operators + other.operators,
        )

    def times(self, count: int) -> Cost:
        """Return the cost of ``count`` repetitions."""
        return Cost(self.flops * count, self.num_bytes * count, self.operators * count)


def expanded_densely(name: str, groups: int) -> str:
    """Return the note of a grouped product that XLA may compute with every group."""
    return (
        f"{name} is counted as one product for each token; where XLA has no kernel for it (CPU, "
        f"and GPU by default), it expands it densely to {groups} times that"
    )


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
