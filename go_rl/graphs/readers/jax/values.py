"""The flat program that a jaxpr becomes: values, equations without nesting, and their liveness."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
from jax._src import source_info_util

from go_rl.core.graph.element_type import ElementType, element_type
from go_rl.core.graph.op_kind import OpKind
from go_rl.graphs.readers.cost import Cost

Params = Mapping[str, Any]
"""Parameters of a primitive."""


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


_ARITHMETIC: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "eq": np.equal,
    "ge": np.greater_equal,
    "gt": np.greater,
    "le": np.less_equal,
    "lt": np.less,
    "max": np.maximum,
    "min": np.minimum,
    "mul": np.multiply,
    "ne": np.not_equal,
    "neg": np.negative,
    "sub": np.subtract,
}


def known_scalar(array: Any) -> Any:
    """Return a closed-over scalar as NumPy's, or None for anything else (a random key)."""
    try:
        return np.asarray(array)
    except (TypeError, ValueError):
        return None


def known_result(name: str, inputs: Sequence[Value], out: Value) -> Any:
    """Return the integer that a primitive makes of known scalars, or None."""
    if out.shape != () or any(v.known is None for v in inputs):
        return None
    if not isinstance(out.dtype, np.dtype) or not np.issubdtype(out.dtype, np.integer):
        return None
    if name == "convert_element_type":
        return np.asarray(inputs[0].known).astype(out.dtype)
    if name in _ARITHMETIC:
        return np.asarray(_ARITHMETIC[name](*(v.known for v in inputs)), out.dtype)
    return None


def join_scopes(outer: str, inner: str) -> str:
    """Join two name stacks, either of which may be empty."""
    return f"{outer}/{inner}" if outer and inner else outer or inner


@lru_cache(maxsize=65536)
def clean_scope(scope: str) -> str:
    """Strip transformations from a name stack: ``transpose(jvp(enc))/block`` is ``enc/block``."""
    bare = re.sub(r"\bjit\([^()]*\)", "", scope)
    bare = re.sub(r"\b\w+\(", "", bare).replace(")", "")
    return "/".join(part for part in bare.split("/") if part)


def source_line(eqn: Any) -> str:
    """Return ``file:line`` of the user's code, the file's base name only; else nothing."""
    traceback = eqn.source_info.traceback
    if traceback is None:
        return ""
    try:
        frame = source_info_util.user_frame(traceback)
    except Exception:  # a private interface of JAX: no line is better than no graph
        return ""
    if frame is None:
        return ""
    base = re.split(r"[/\\]", frame.file_name)[-1]
    return f"{base}:{frame.start_line}"
