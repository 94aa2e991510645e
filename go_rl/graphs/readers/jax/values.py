"""The flat program that a jaxpr becomes: values, equations without nesting, and their liveness."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

from go_rl.core.graph.element_type import ElementType, element_type
from go_rl.core.graph.op_kind import OpKind
from go_rl.graphs.readers.cost import Cost


@dataclass(frozen=True)
class LoopPart:
    """Operations of an unrolled loop between its trips, which no jaxpr equation contains."""

    row: int | None
    """Row that is taken of a scanned array; None: the operands are stacked as rows."""


@dataclass(eq=False, slots=True)
class Value:
    """One array of the program, abstract: nothing is computed."""

    shape: tuple[int, ...]
    dtype: Any
    producer: Equation | None = None
    """The equation that makes it; None for literals and weights."""
    output: int = 0
    """Index of the producer's result."""
    weights: frozenset[str] = frozenset()
    """Names of the base weights that it is a view of; empty for anything but a weight."""
    known: Any = None
    """The number itself, where a scalar's value does not depend on the inputs."""
    views: list[Cost] = field(default_factory=list)
    """Cost of making the view; charged to the first equation that reads it."""
    view_of: tuple[Any, Value] | None = None
    """The jaxpr equation or `LoopPart` that makes the view, and the weight or view it reads."""
    array: Any = None
    """The array itself, where the function closes over it."""

    @property
    def is_literal(self) -> bool:
        """True for a number written in the program."""
        return self.known is not None and self.producer is None

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def itemsize(self) -> int:
        """Bytes of one element; a random key counts its words."""
        return int(getattr(self.dtype, "itemsize", 0))

    @property
    def type(self) -> ElementType:
        """Type of its elements; unknown of random keys."""
        return element_type(str(self.dtype))

    @property
    def num_bytes(self) -> float:
        """Bytes of the whole array."""
        return float(self.size * self.itemsize)


@dataclass(eq=False, slots=True)
class Equation:
    """One operator of the flat program, or one input (`op_type` ``input``)."""

    op_type: str
    kind: OpKind
    inputs: list[Value]
    outputs: list[Value]
    cost: Cost = field(default_factory=Cost)
    scope: str = ""
    """JAX name stack, transformations included."""
    line: str = ""
    """``file:line`` of the user's code, or an empty string."""
    name: str = ""
    """Set for inputs only; other nodes are numbered when the graph is assembled."""
    live: bool = False
    eqn: Any = None
    """The jaxpr equation or `LoopPart` that computes it; None: an input, or one that nothing
    computes alone (a choice between branches)."""

    @property
    def is_backward(self) -> bool:
        """True when JAX made the equation while transposing, that is in the backward pass."""
        return "transpose(" in self.scope


def mark_live(equations: Sequence[Equation], outputs: Sequence[Value]) -> None:
    """Mark the equations that some output depends on; XLA never sees the others either."""
    for value in outputs:
        if value.producer is not None:
            value.producer.live = True
    for equation in reversed(equations):
        if not equation.live:
            continue
        for value in equation.inputs:
            if value.producer is not None:
                value.producer.live = True


def view_cost(value: Value) -> Cost:
    """Take the pending cost of a weight's view: a view is made once for all readers."""
    total = sum(value.views, Cost())
    value.views.clear()
    return total


def total_cost(equations: Sequence[Equation]) -> Cost:
    """Sum the live equations and the views they are the first to read."""
    live = (e for e in equations if e.live)
    return sum((c for e in live for c in (e.cost, *map(view_cost, e.inputs))), Cost())
