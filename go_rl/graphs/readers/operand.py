"""`Operand`: a tensor as operators read it; nodes and edges of such operands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from go_rl.core.graph.element_type import ElementType
from go_rl.core.graph.op_kind import OpKind
from go_rl.graphs.readers.arithmetic.closed_forms import Strides
from go_rl.graphs.readers.cost import Tensor
from go_rl.graphs.readers.graph_builder import TIE_BYTES, GraphBuilder, Node

Price = tuple[OpKind, float, float]
"""Kind of an operator, its FLOP, and the bytes that it reads and writes."""


@dataclass(frozen=True)
class Operand:
    """A tensor, or a view of one: its producer, and the weights in it."""

    tensor: Tensor
    producer: int | None = None
    """Number of the producing node; None: a weight, or a value that no node of the graph makes."""
    output: int = 0
    weights: Mapping[str, Tensor] = field(default_factory=dict)
    """Stored arrays by name, when the value is a weight."""
    strides: Strides = None
    """Elements between neighbours on each axis in memory; None: taken for contiguous."""
    sent_bytes: float | None = None
    """Bytes that exist of it, where those are fewer than the tensor's: of an expanded one."""
    stored_type: ElementType = ElementType.UNKNOWN
    """Type in which the value arrives where another is made of it on the way: that of quantised
    activations, which a product reads as they are."""
    array: np.ndarray | None = None
    """Array value, when it is a small constant."""

    @property
    def num_bytes(self) -> float:
        """Bytes that are read, or sent, for the whole of it."""
        return self.tensor.nbytes if self.sent_bytes is None else self.sent_bytes

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents of the tensor."""
        return self.tensor.shape

    def viewed(self, shape: tuple[int, ...]) -> Operand:
        """Return the same elements, or a part of them, by another shape."""
        return replace(self, tensor=replace(self.tensor, shape=shape))


def weights_of(read: Iterable[Operand]) -> dict[str, Tensor]:
    """Return the stored arrays that operands are views of."""
    return {name: tensor for value in read for name, tensor in value.weights.items()}


def add_input(
    builder: GraphBuilder, name: str, tensor: Tensor, source: str, op_type: str = "input"
) -> Operand:
    """Add an input of the model."""
    node = operator_node(
        name, op_type, (OpKind.INPUT, 0.0, 0.0), [tensor], {}, element_type=tensor.type,
        source=source,
    )  # fmt: skip
    return Operand(tensor, builder.add_node(node))


def add_operator(builder: GraphBuilder, node: Node, read: Iterable[Operand]) -> int:
    """Add the node of an operator, with edges from what it reads; return its number."""
    number = builder.add_node(node)
    for value in read:
        if value.producer is not None:
            builder.add_edge(value.producer, number, value.num_bytes, value.output)
    return number


def operator_node(
    name: str,
    op_type: str,
    price: Price,
    results: Sequence[Tensor | None],
    weights: Mapping[str, Tensor],
    **others: Any,
) -> Node:
    """Return the node of an operator.

    Args:
        name: of the node.
        op_type: what it computes.
        price: kind, FLOP, and bytes.
        results: None where one is left out.
        weights: stored arrays that it reads, by name.
        others: further fields of the node, or other values of those that follow from the above.
    """
    made = [tensor for tensor in results if tensor is not None] or [Tensor((), 0.0)]
    stored = float(sum(tensor.nbytes for tensor in weights.values()))
    elements = sum(tensor.size for tensor in weights.values())
    fields: dict[str, Any] = {
        "output_bytes": float(sum(tensor.nbytes for tensor in made)),
        "output_itemsize": made[0].itemsize,
        "output_shape": made[0].shape,
        "weight_bytes": stored,
        "weight_itemsize": stored / elements if elements else 0.0,
        "weight_arrays": {w: float(t.nbytes) for w, t in weights.items() if t.nbytes > TIE_BYTES},
    }
    kind, flops, num_bytes = price
    return Node(name, op_type, kind, flops, num_bytes, **(fields | others))
