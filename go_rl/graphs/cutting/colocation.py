"""`with_colocation`: which operators of a graph must share a device, as the user wants it.

``gradients``: those of a training graph sit with their forward operators.

TensorFlow 1.x, in which GO and HDP placed graphs, colocates so: ``tf.gradients`` with
``colocate_gradients_with_ops`` puts the gradient of an operator on the operator's device, the sum
of several gradients of a tensor with the operator that made it, and an optimizer's update with its
variable, here with the first reader of the weight. A JAX graph does not say which operator a
backward node belongs to; it is found by what the node reads and where its line lies in the model.

``operators``: the parts of one operator of an ONNX file sit together: the steps of a recurrent
layer, what is in the branch of an ``If``. Such a plan can be written as files (`plans.stages`).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, get_args

import numpy as np
from jaxtyping import Bool, Int64

from go_rl.core import FREE, OpGraph, Plan, ProblemError
from go_rl.core.errors import nearest
from go_rl.core.graph.fusion import heavy_nodes
from go_rl.core.graph.micro_batch import micro_batch_of
from go_rl.graphs.cutting.layers import layer_names

Colocation = Literal["graph", "gradients", "operators", "none"]
"""Classes as the model file has them, those and gradients with their operators, those and the parts
of one operator of the file, or none."""
COLOCATIONS: tuple[str, ...] = get_args(Colocation)
UNKNOWN = -1
"""Home that is not found yet."""
SUM = "add_any"
"""Operator that adds the gradients of one tensor."""
_OPERATOR = re.compile(r" at (.*?\.node\[\d+\])")
"""Place of an operator in its file, or in a function of it, in the source of what it is read as."""


def check_colocation(colocation: str) -> None:
    """Raise a `ProblemError` for another word than those of `Colocation`."""
    if colocation not in COLOCATIONS:
        raise ProblemError(
            f"colocation must be one of {', '.join(COLOCATIONS)}, not "
            f"{colocation!r}{nearest(str(colocation), COLOCATIONS)}"
        )


def with_colocation(graph: OpGraph, colocation: str) -> OpGraph:
    """Return the graph with the classes that are wanted.

    Raises:
        ProblemError: no such word.
    """
    check_colocation(colocation)
    if colocation == "none":
        return replace(graph, colocation=np.full(graph.num_nodes, FREE, np.int32))
    return MAKERS[colocation](graph) if colocation in MAKERS else graph


def graph_of_plan(plan: Plan, graph: OpGraph) -> OpGraph:
    """Return a graph with the colocation that the plan was made with."""
    return with_colocation(graph, colocation_of(plan, graph))


def colocation_of(plan: Plan, graph: OpGraph) -> str:
    """Return the colocation that a plan was made with; the graph's own if it is of another."""
    made = (each for each in COLOCATIONS if with_colocation(graph, each).digest == plan.graph_hash)
    return next(made, "graph")


def operators_colocated(graph: OpGraph) -> OpGraph:
    """Return the graph with a colocation class for each operator of its ONNX file that it has in
    parts. Classes that the graph has stay."""
    parts: dict[tuple[str, str], list[int]] = defaultdict(list)
    for node, (name, source) in enumerate(zip(graph.names, graph.source, strict=True)):
        if (found := _OPERATOR.search(source)) and graph.colocation[node] == FREE:
            call = "" if found[1].startswith("graph.") else str(name).partition("/")[0]
            parts[found[1], call].append(node)
    several = [nodes for nodes in parts.values() if len(nodes) > 1]
    if not several:
        return graph
    colocation = graph.colocation.copy()
    for number, nodes in enumerate(several, int(colocation.max(initial=FREE)) + 1):
        colocation[nodes] = number
    return replace(graph, colocation=colocation)


def gradients_colocated(graph: OpGraph) -> OpGraph:
    """Return the graph with a colocation class for each forward operator and what belongs to it.

    Classes that the graph has stay; nodes without a home stay free, such as all of a graph without
    backward nodes, which is returned as it is.
    """
    if not graph.is_backward.any():
        return graph
    home, own = forward_homes(graph), graph.colocation
    first = int(own.max(initial=FREE)) + 1
    guests = np.flatnonzero((home != UNKNOWN) & (home != np.arange(graph.num_nodes)))
    guests = guests[own[guests] == FREE]
    hosts = home[guests]
    found = own.copy()
    _, number = np.unique(hosts, return_inverse=True)
    free = own[hosts] == FREE
    found[hosts[free]] = first + number[free]
    found[guests] = found[hosts]
    return replace(graph, colocation=found.astype(np.int32))


def forward_homes(graph: OpGraph) -> Int64[np.ndarray, "N"]:
    """Return [N] the forward operator that each node belongs to.

    Forward operators are at home with themselves; what only gradients read of them, such as the
    derivative of an activation, belongs to its producer. `UNKNOWN`: inputs, constants, and backward
    nodes that touch nothing with a home.
    """
    return _Homes(graph).found()


@dataclass(frozen=True, eq=False)
class _Homes:
    """Search for the homes of one graph."""

    graph: OpGraph

    @cached_property
    def late(self) -> Bool[np.ndarray, "N"]:
        """[N] backward nodes and all that needs one: updates of weights."""
        late = self.graph.is_backward.copy()
        for node in range(self.graph.num_nodes):
            late[node] = late[node] or any(late[p] for p in self.producers(node))
        return late

    @cached_property
    def places(self) -> list[tuple[str, str]]:
        """[N] scope and line of the model that each node comes from."""
        lines = (text.rpartition(" ")[2] for text in self.graph.source)
        return list(zip(layer_names(self.graph), lines, strict=True))

    def producers(self, node: int) -> list[int]:
        """Return the nodes that a node reads."""
        offsets, edges = self.graph.predecessors
        return self.graph.senders[edges[offsets[node] : offsets[node + 1]]].tolist()

    def readers(self, node: int) -> list[int]:
        """Return the nodes that read a node, ascending."""
        offsets, edges = self.graph.successors
        return sorted(self.graph.receivers[edges[offsets[node] : offsets[node + 1]]].tolist())

    def found(self) -> Int64[np.ndarray, "N"]:
        """Return the homes."""
        graph, late = self.graph, self.late
        up, down = range(graph.num_nodes), range(graph.num_nodes - 1, -1, -1)
        home = np.where(late | graph.is_fed, UNKNOWN, np.arange(graph.num_nodes))
        for node in up:
            if home[node] == node and self._serves_gradients(node):
                home[node] = self._of_producer(node, home, node)
        self._updates(home)
        self._mates_by_weight(home)
        for node in np.flatnonzero(graph.is_backward & (home == UNKNOWN)).tolist():
            home[node] = self._anchor(node, home)
        sums = np.array([op == SUM for op in graph.op_type])
        for part in (slice(None), slice(1)):  # of scope and line: both, then the scope alone
            self._follow(home, (n for n in up if not sums[n]), self.producers, part)
            self._follow(home, (n for n in down if not sums[n]), self.readers, part)
        self._follow(home, down, self.readers)
        self._follow(home, up, self.producers)
        return home

    def _serves_gradients(self, node: int) -> bool:
        """Whether only gradients, and what serves them alone, read a forward node."""
        return bool(self._gradients_only[node]) and not self.graph.is_output[node]

    @cached_property
    def _gradients_only(self) -> Bool[np.ndarray, "N"]:
        only = np.zeros(self.graph.num_nodes, np.bool_)
        light = ~heavy_nodes(self.graph)  # else all serves gradients where the loss is not returned
        for node in np.flatnonzero(light)[::-1].tolist():
            readers = self.readers(node)
            only[node] = bool(readers) and all(self.late[r] or only[r] for r in readers)
        return only

    def _of_producer(self, node: int, home: np.ndarray, otherwise: int) -> int:
        """The home of a producer on the same line of the model."""
        near = [p for p in self.producers(node) if self.places[p] == self.places[node]]
        return next((int(home[p]) for p in near if home[p] != UNKNOWN), otherwise)

    def _updates(self, home: Int64[np.ndarray, "N"]) -> None:
        """Put updates of tied weights with the first forward reader."""
        graph, first = self.graph, {}
        for node, array in zip(graph.tied_node.tolist(), graph.tied_array.tolist(), strict=True):
            if not self.late[node]:
                first.setdefault(array, node)
            elif not graph.is_backward[node] and array in first and home[node] == UNKNOWN:
                home[node] = home[first[array]]

    def _mates_by_weight(self, home: Int64[np.ndarray, "N"]) -> None:
        """Put backward nodes that read a tied weight with the forward reader on the same line of
        the model, of their micro-batch; where a layer is repeated, the gradients come in reverse
        order."""
        readers: dict[tuple[int, int, tuple[str, str]], tuple[list[int], list[int]]] = {}
        tied = zip(self.graph.tied_node.tolist(), self.graph.tied_array.tolist(), strict=True)
        for node, array in tied:
            key = (array, micro_batch_of(self.graph.names[node]), self.places[node])
            forward, backward = readers.setdefault(key, ([], []))
            if self.graph.is_backward[node]:
                backward.append(node)
            elif not self.late[node]:
                forward.append(node)
        for forward, backward in readers.values():
            for node, mate in zip(backward, reversed(forward), strict=False):
                if home[node] == UNKNOWN:
                    home[node] = home[mate]

    def _anchor(self, node: int, home: np.ndarray) -> int:
        """Home of a backward node by the forward tensors that it reads: an operator that reads the
        same tensor on the same line of the model, of the same type first; else the tensor's own."""
        tensors = [p for p in self.producers(node) if not self.late[p] and not self.graph.is_fed[p]]
        op, place = self.graph.op_type[node], self.places[node]
        near = [r for p in tensors for r in self.readers(p)
                if not self.late[r] and self.places[r] == place]  # fmt: skip
        alike = [r for r in near if self.graph.op_type[r] == op]
        own = [p for p in tensors if self.places[p] == place]
        return next((int(home[n]) for n in (*alike, *own, *near, *tensors)), UNKNOWN)

    def _follow(
        self,
        home: Int64[np.ndarray, "N"],
        nodes: Iterable[int],
        neighbours: Callable[[int], list[int]],
        part: slice | None = None,
    ) -> None:
        """Give late nodes without a home that of the first neighbour that has one; with ``part`` of
        scope and line, only of one whose home agrees in it with the node."""
        for node in nodes:
            if not self.late[node] or self.graph.is_fed[node] or home[node] != UNKNOWN:
                continue
            known = [int(home[n]) for n in neighbours(node) if home[n] != UNKNOWN]
            if part is not None:
                known = [h for h in known if self.places[h][part] == self.places[node][part]]
            if known:
                home[node] = known[0]


MAKERS: dict[str, Callable[[OpGraph], OpGraph]] = {
    "gradients": gradients_colocated, "operators": operators_colocated,
}  # fmt: skip
"""Programs that add classes to those of the file."""
