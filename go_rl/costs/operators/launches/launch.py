"""`Launch`: one kernel that a network starts on a GPU, as an operator of the table with sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float64, Int8, Int64

from go_rl.core.graph.op_kind import PRODUCT_KINDS
from go_rl.costs.operator_sizes import FLOAT_BYTES
from go_rl.costs.operators.tables.operator_rows import ONE_READ, SIZES, OperatorRows

if TYPE_CHECKING:
    from go_rl.core import OpGraph

BATCH_NORM = "batch norm"
"""Description of batch norms."""


@dataclass(frozen=True)
class Launch:
    """One kernel."""

    op: str
    """Operator, one of `go_rl.costs.operators.tables.OPERATORS`, by which it is priced."""
    sizes: Mapping[str, int]
    """Sizes that the operator has, by name."""
    nodes: tuple[int, ...]
    """Nodes of the graph that it stands for; empty: a copy, or a further kernel of the launch
    before it."""
    what: str
    """Description of the launch, for people: ``linear``, ``residual add``, ``copy of an
    operand``."""
    extra_bytes: float = 0.0
    """Bytes that operators fused into it move beyond its own."""
    unlike: bool = False
    """The operator of the table is a stand-in for one that it does not have."""
    by_bytes: bool = False
    """Its sizes follow from the bytes that it moves, whatever elements those are."""

    @property
    def key(self) -> tuple[object, ...]:
        """Key of everything that the price depends on."""
        return self.op, tuple(sorted(self.sizes.items())), self.extra_bytes


@dataclass(frozen=True, eq=False)
class Launches:
    """``L`` launches in the order in which a host issues them."""

    graph: OpGraph
    each: tuple[Launch, ...]
    before: tuple[tuple[int, ...], ...] = field(default=())
    """[L] launches whose results each one reads; all of lower number."""

    def __len__(self) -> int:
        return len(self.each)

    @cached_property
    def distinct(self) -> tuple[OperatorRows, Int64[np.ndarray, "L"]]:
        """The distinct operators, and [L] which of them each launch is."""
        found: dict[tuple[object, ...], int] = {}
        which = [found.setdefault(launch.key[:2], len(found)) for launch in self.each]
        first = dict(zip(which, self.each, strict=True))
        chosen = [first[number] for number in range(len(found))]
        return operator_rows(chosen), np.array(which, np.int64)

    @cached_property
    def rows(self) -> OperatorRows:
        """[L] operators of the launches."""
        return operator_rows(self.each)

    @property
    def extra_bytes(self) -> Float64[np.ndarray, "L"]:
        """[L] `Launch.extra_bytes`."""
        return np.array([launch.extra_bytes for launch in self.each], np.float64)

    @cached_property
    def element_types(self) -> Int8[np.ndarray, "L"]:
        """[L] `ElementType` in which each launch computes; unknown where only its bytes count."""
        of_node, found = self.graph.element_type, np.zeros(len(self.each), np.int8)
        if of_node is None:
            return found
        for number, launch in enumerate(self.each):
            if launch.by_bytes:
                continue
            if not launch.nodes:  # a copy, or a further kernel of the launch before it
                found[number] = found[number - 1]
                continue
            heavy = [n for n in launch.nodes if self.graph.kind[n] in PRODUCT_KINDS]
            found[number] = of_node[(heavy or launch.nodes)[-1]]
        return found

    @property
    def unlike(self) -> np.ndarray:
        """[L] `Launch.unlike`."""
        return np.array([launch.unlike for launch in self.each], bool)


def operator_rows(launches: Sequence[Launch]) -> OperatorRows:
    """Return launches as rows of the table of operators."""
    columns = {
        name: np.array([launch.sizes.get(name, 0) for launch in launches], np.int64)
        for name in SIZES
    }
    return OperatorRows(np.array([launch.op for launch in launches], dtype=str), columns)


def stream(op: str, shape: Sequence[int], nodes: tuple[int, ...], what: str) -> Launch:
    """Return a launch of a stream over a tensor: its last dimension is a row."""
    length = shape[-1] if shape else 1
    return Launch(op, {"batch": prod(shape[:-1]), "width": length}, nodes, what)


def batch_norm(shape: Sequence[int], nodes: tuple[int, ...]) -> Launch:
    """Return the launch of a batch norm in inference; of a tensor that is no square image, which
    was not measured, one that reads and writes it."""
    if len(shape) != 4 or shape[2] != shape[3]:
        return stream("mulu", shape, nodes, BATCH_NORM)
    batch, channels, side, _ = shape
    sizes = {"batch": batch, "input_channel": channels, "output_channel": channels,
             "kernel_size": 1, "input_size": side, "stride": 1, "padding": 0}  # fmt: skip
    return Launch("batchnorm", sizes, nodes, BATCH_NORM)


def moved(
    num_bytes: float | int, length: int, nodes: tuple[int, ...], what: str, unlike: bool = False
) -> Launch:
    """Return the launch of a kernel that is known by the bytes it reads and writes.

    Args:
        num_bytes: read and written together.
        length: elements of a row.
        nodes: of the graph.
        what: for people.
        unlike: see `Launch`.
    """
    elements = max(1, round(num_bytes / (2 * FLOAT_BYTES)))
    length = max(1, min(length, elements))
    sizes = {"batch": max(1, round(elements / length)), "width": length}
    return Launch(ONE_READ, sizes, nodes, what, unlike=unlike, by_bytes=True)
