"""`OperatorView`: a graph's operators under one set of names, whichever reader made it."""

from __future__ import annotations

from functools import cached_property
from math import prod

import numpy as np
from jaxtyping import Bool

from go_rl.core import GEOMETRY, ElementType, OpGraph, OpKind
from go_rl.costs.operators.tables import OperatorError
from go_rl.graphs.cutting.opcode_names import opcode

VIEWS = frozenset({
    "reshape", "squeeze", "expand_dims", "broadcast_in_dim", "Identity", "stop_gradient", "Shape",
    "Size", "slice", "split", "unstack", "Dropout", "Constant", "ConstantOfShape", "iota",
    "bitcast", "opt-barrier", "Optional", "OptionalGetElement",
})  # fmt: skip
"""Operators that PyTorch answers with another view of the same memory: no launch."""
ELEMENTWISE = int(OpKind.ELEMENTWISE)
PARTS = frozenset({"slice", "split", "unstack"})
"""Views of a part of their operand: tensors of their own."""
NO_GRADIENT = frozenset({"lt", "le", "gt", "ge", "eq", "ne", "and", "or", "not", "argmax", "argmin",
                   "sign", "floor", "ceil", "round"})  # fmt: skip
"""Operators without a gradient."""
NUMBERS = frozenset({"broadcast_in_dim", "ConstantOfShape", "Constant", "constant"})
"""Constants that hold one number."""
HALVES = ElementType.FLOAT16, ElementType.BFLOAT16
DATA_DEPENDENT = frozenset({
    "Compress", "NonMaxSuppression", "NonZero", "Unique", "com.microsoft.Unique",
    "aten._unique", "aten._unique2", "aten.argwhere", "aten.masked_select", "aten.nonzero",
    "aten.unique_consecutive", "aten.unique_dim", "torchvision.nms",
    "NON_MAX_SUPPRESSION_V4", "NON_MAX_SUPPRESSION_V5", "UNIQUE",
})  # fmt: skip
"""Operators, by their own names, whose results are as large as their data say: a graph has the
largest size."""
KEPT_NAMES = frozenset({"Relu", "ReduceMean", "relu"})
"""Names that say more than what `opcode` makes of them."""


class OperatorView:
    """A graph with names, shapes, operands and users by node."""

    def __init__(self, graph: OpGraph) -> None:
        self.graph = graph
        count = graph.num_nodes
        self.op = [name if name in KEPT_NAMES else opcode(name) for name in graph.op_type]
        self.shape = [tuple(int(s) for s in row if s >= 0) for row in graph.output_shape.tolist()]
        self.elements = [self._elements(node) for node in range(count)]
        self.weights = [self._weights(node) for node in range(count)]
        """[N] elements of the weights that a node reads."""
        self.operands: list[list[int]] = [[] for _ in range(count)]
        self.users: list[list[int]] = [[] for _ in range(count)]
        for sender, receiver in zip(graph.senders.tolist(), graph.receivers.tolist(), strict=True):
            if sender not in self.operands[receiver] and not self._is_number(sender):
                self.operands[receiver].append(sender)
                self.users[sender].append(receiver)
        self.backward = self._backward()
        """[N] of the backward pass, and what only it reads: derivatives kept on the way."""
        self.live = self._live()
        """[N] whether it is computed at each call: what depends on nothing that the user gives is
        computed once, but by PyTorch's own operators."""

    @cached_property
    def is_view(self) -> list[bool]:
        """[N] whether PyTorch launches nothing for it. Reshapes of its own graphs that are views
        are no nodes: one that is there copies."""
        return [
            op in VIEWS and not (copies and op == "reshape")
            for op, copies in zip(self.op, self.is_launch, strict=True)
        ]

    @cached_property
    def is_launch(self) -> list[bool]:
        """[N] whether it is an operator of PyTorch, which launches it as it is: such pieces of a
        norm or a softmax are kernels of their own."""
        return [name.startswith("aten.") for name in self.graph.op_type]

    @cached_property
    def is_bounded(self) -> list[bool]:
        """[N] whether a graph has an upper bound only of what a node reads or writes: it is of
        `DATA_DEPENDENT`, or reads the result of such a node."""
        found, passed = [False] * len(self.op), [False] * len(self.op)
        for node, op_type in enumerate(self.graph.op_type):
            own = op_type in DATA_DEPENDENT and self.live[node]
            found[node] = own or any(passed[o] for o in self.operands[node])
            # A sum over the elements has one size, and so has a tensor that some are written to.
            kept = any(
                not passed[o] and self.shape[o] == self.shape[node] for o in self.operands[node]
            )
            is_sum = self.graph.kind[node] == OpKind.REDUCTION
            passed[node] = own or (found[node] and not is_sum and not kept)
        return found

    @cached_property
    def after(self) -> list[bool]:
        """[N] whether a node of the forward direction follows the backward pass: an update."""
        return self._updates(self.graph.is_backward.tolist())

    @cached_property
    def learns(self) -> list[bool]:
        """[N] whether a result depends on weights, smoothly: whether PyTorch keeps a gradient."""
        if not any(self.weights):
            return [op not in NO_GRADIENT for op in self.op]
        found: list[bool] = []
        for node, op in enumerate(self.op):
            moved = self.weights[node] > 0 or any(found[o] for o in self.operands[node])
            found.append(moved and op not in NO_GRADIENT)
        return found

    def geometry(self, node: int, name: str) -> float:
        """Return a number of `go_rl.core.Geometry`; NaN where it is unknown."""
        if self.graph.geometry is None:
            return float("nan")
        return float(self.graph.geometry[node, GEOMETRY.index(name)])

    def source(self, node: int) -> int:
        """Return the node whose memory a view shows."""
        while self._is_alias(node) and len(self.operands[node]) == 1:
            node = self.operands[node][0]
        return node

    def sources(self, node: int) -> list[int]:
        """Return the distinct operands, through views."""
        return list(dict.fromkeys(self.source(o) for o in self.operands[node]))

    def real_users(self, node: int) -> list[int]:
        """Return the distinct users, through views."""
        found: dict[int, None] = {}
        stack = list(self.users[node])
        while stack:
            user = stack.pop()
            if self._is_alias(user):
                stack.extend(self.users[user])
            else:
                found.setdefault(user)
        return sorted(found)

    def forward_users(self, node: int) -> list[int]:
        """Return those of `real_users` that are not of the backward pass."""
        return [user for user in self.real_users(node) if not self.backward[user]]

    def only_weights(self, node: int) -> bool:
        """Whether nothing but weights and constants enters a node."""
        return not self.live[node]

    def scalar_only(self, node: int) -> bool:
        """Whether an element-wise node has one operand and, if another, a number."""
        return len(self.operands[node]) == 1 and self.weights[node] == 0

    def _backward(self) -> list[bool]:
        stated = self.graph.is_backward.tolist()
        if not any(stated):
            return stated
        updates = self._updates(stated)
        ahead = [not (b or u) for b, u in zip(stated, updates, strict=True)]
        needed = [a and bool(o) for a, o in zip(ahead, self.graph.is_output, strict=True)]
        if not any(needed):
            needed = [a and not u for a, u in zip(ahead, self.users, strict=True)]
        for node in reversed(range(len(needed))):
            if needed[node]:
                for operand in self.operands[node]:
                    needed[operand] = True
        return [b or (a and not n) for b, a, n in zip(stated, ahead, needed, strict=True)]

    def _updates(self, backward: list[bool]) -> list[bool]:
        found = list(backward)
        for node in range(len(found)):
            found[node] = found[node] or any(found[o] for o in self.operands[node])
        return [f and not b for f, b in zip(found, backward, strict=True)]

    def _is_number(self, node: int) -> bool:
        """Whether a node is one constant, spread over a tensor: PyTorch passes the number."""
        offsets = self.graph.predecessors[0]
        reads = offsets[node] < offsets[node + 1] or self.weights[node]
        return not reads and self.op[node] in NUMBERS

    def _is_alias(self, node: int) -> bool:
        """Whether a node shows all of its operand."""
        return self.is_view[node] and self.op[node] not in PARTS

    def _elements(self, node: int) -> int:
        graph = self.graph
        size = graph.output_itemsize[node]
        if size > 0 and graph.output_bytes[node] > 0:
            stated = prod(self.shape[node])
            counted = round(float(graph.output_bytes[node] / size))
            return stated if self.shape[node] and stated <= counted else counted
        return prod(self.shape[node])

    def _weights(self, node: int) -> int:
        size = self.graph.weight_itemsize[node]
        found = round(float(self.graph.weight_bytes[node] / size)) if size > 0 else 0
        return found if found > 1 else 0  # one element is a number

    def _live(self) -> list[bool]:
        kind = self.graph.kind.tolist()
        given = [k == OpKind.INPUT for k in kind]
        if not any(given):
            return [k != OpKind.CONSTANT for k in kind]
        for node, (own, operands) in enumerate(zip(self.is_launch, self.operands, strict=True)):
            given[node] = given[node] or own or any(given[o] for o in operands)
        return given


def check_float32(graph: OpGraph) -> None:
    """Raise an `OperatorError` for products or arithmetic of another type than float32."""
    wrong = np.flatnonzero(_in_other_types(graph))
    if wrong.size:
        node, types = int(wrong[0]), graph.element_type
        name = "unknown" if types is None else ElementType(int(types[node])).label
        raise OperatorError(
            f"{graph.name}: only float32 was measured on this machine, and {graph.names[node]!r} "
            f"({graph.op_type[node]}) computes in {name}"
        )


def _in_other_types(graph: OpGraph) -> Bool[np.ndarray, "N"]:
    """[N] products in other types than float32, and arithmetic in halves."""
    if graph.element_type is None:
        return np.zeros(graph.num_nodes, np.bool_)
    arithmetic = np.isin(graph.kind, (ELEMENTWISE, int(OpKind.REDUCTION)))
    return (graph.product_type != 0) | (arithmetic & np.isin(graph.element_type, HALVES))
