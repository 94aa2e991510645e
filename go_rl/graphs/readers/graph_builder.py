"""`GraphBuilder`: turns the operators and tensors of all readers into a checked `OpGraph`."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from go_rl.core.errors import GraphError
from go_rl.core.graph.check_graph import check_graph
from go_rl.core.graph.element_type import ElementType
from go_rl.core.graph.geometry import Geometry, geometry_row
from go_rl.core.graph.op_graph import FREE, NO_DIM, NodeId, OpGraph
from go_rl.core.graph.op_kind import OpKind

_COLUMNS: dict[str, type] = {
    "kind": np.int8,
    **dict.fromkeys(("flops", "bytes_accessed", "output_bytes", "weight_bytes"), np.float64),
    **dict.fromkeys(("output_itemsize", "weight_itemsize"), np.float64),
    "colocation": np.int32,
    **dict.fromkeys(("is_backward", "is_output"), np.bool_),
}
"""Attributes of nodes that are arrays of the graph as they stand."""
TIE_BYTES = 1024.0
"""Arrays up to this size are each reader's own: ties of scalars would say nothing."""


@dataclass(frozen=True)
class Node:
    """One operator as a reader describes it; units and meaning as in `OpGraph`."""

    name: NodeId
    op_type: str
    kind: OpKind
    flops: float = 0.0
    bytes_accessed: float = 0.0
    output_bytes: float = 0.0
    weight_bytes: float = 0.0
    output_itemsize: float = 0.0
    weight_itemsize: float = 0.0
    weight_arrays: Mapping[str, float] = field(default_factory=dict)
    """Bytes, included in `weight_bytes`, of the arrays that other nodes may read too, by any name:
    arrays of one name and size are one array. Others are the node's own."""
    output_shape: tuple[int, ...] = ()
    colocation: int = FREE
    is_backward: bool = False
    is_output: bool = False
    source: str = ""
    seconds: Mapping[str, float] = field(default_factory=dict)
    transfer_seconds: float | None = None
    geometry: Geometry | None = None
    element_type: ElementType = ElementType.UNKNOWN


class GraphBuilder:
    """Nodes and edges in any order; `build` sorts, checks and freezes them."""

    def __init__(self, name: str, meta: Mapping[str, Any] | None = None) -> None:
        self.name = name
        self.meta: dict[str, Any] = dict(meta or {})
        self._nodes: list[Node] = []
        self._index: dict[NodeId, int] = {}
        self._edges: dict[tuple[int, int, int], float] = {}

    def __len__(self) -> int:
        return len(self._nodes)

    def __contains__(self, name: NodeId) -> bool:
        return name in self._index

    def add_node(self, node: Node) -> int:
        """Add a node and return its number in order of adding; its name must be new."""
        if node.name in self._index:
            raise GraphError(f"graph {self.name!r}: two nodes have the id {node.name!r}")
        self._index[node.name] = len(self._nodes)
        self._nodes.append(node)
        return len(self._nodes) - 1

    def replace_node(self, number: int, node: Node) -> None:
        """Replace the node added as ``number``; the name must not change."""
        if self._nodes[number].name != node.name:
            raise GraphError(f"graph {self.name!r}: cannot rename {self._nodes[number].name!r}")
        self._nodes[number] = node

    def mark_output(self, number: int | None) -> None:
        """Mark the node added as ``number``, if there is one, as making a result of the model."""
        if number is not None:
            self._nodes[number] = replace(self._nodes[number], is_output=True)

    def node(self, number: int) -> Node:
        """Return the node added as ``number``."""
        return self._nodes[number]

    @property
    def nodes(self) -> list[Node]:
        """Nodes in the order of adding."""
        return list(self._nodes)

    def number_of(self, name: NodeId) -> int:
        """Return the number of the node called ``name``; a `GraphError` when there is none."""
        if name not in self._index:
            raise GraphError(f"graph {self.name!r}: an edge names node {name!r}, which is absent")
        return self._index[name]

    def add_edge(self, sender: int, receiver: int, num_bytes: float, output: int = 0) -> None:
        """Add the edge that carries result ``output`` of ``sender``; a repeated edge is one."""
        if sender == receiver:
            name = self._nodes[sender].name
            raise GraphError(f"graph {self.name!r}: node {name!r} feeds itself")
        self._edges[sender, receiver, output] = float(num_bytes)

    def ancestors(self, numbers: Collection[int]) -> set[int]:
        """Return some nodes and all that they need."""
        producers: list[list[int]] = [[] for _ in self._nodes]
        for u, v, _ in self._edges:
            producers[v].append(u)
        found, open_ends = set(numbers), list(numbers)
        while open_ends:
            for u in producers[open_ends.pop()]:
                if u not in found:
                    found.add(u)
                    open_ends.append(u)
        return found

    def build(self) -> OpGraph:
        """Sort topologically (stable in order of adding), check, and freeze.

        Raises:
            GraphError: no nodes, a cycle (the message names it), NaN or negative costs.
        """
        if not self._nodes:
            raise GraphError(
                f"graph {self.name!r} has no nodes: nothing in it is computed from its inputs, or "
                "all of it is constant"
            )
        edges = sorted(self._edges)
        for end in (end for u, v, _ in edges for end in (u, v)):
            if not 0 <= end < len(self._nodes):
                raise GraphError(f"graph {self.name!r}: an edge ends at {end}, which is no node")
        order = self._topological_order(edges)
        position = np.empty(len(order), np.int64)
        position[order] = np.arange(len(order))
        graph = self._freeze([self._nodes[i] for i in order], edges, position)
        check_graph(graph)
        return graph

    def _topological_order(self, edges: Sequence[tuple[int, int, int]]) -> list[int]:
        successors: list[list[int]] = [[] for _ in self._nodes]
        indegree = [0] * len(self._nodes)
        for u, v, _ in edges:
            successors[u].append(v)
            indegree[v] += 1
        ready = [i for i, d in enumerate(indegree) if d == 0]
        order: list[int] = []
        while ready:
            u = heapq.heappop(ready)
            order.append(u)
            for v in successors[u]:
                indegree[v] -= 1
                if indegree[v] == 0:
                    heapq.heappush(ready, v)
        if len(order) < len(self._nodes):
            raise GraphError(f"graph {self.name!r} has a cycle: {self._cycle(indegree, edges)}")
        return order

    def _cycle(self, indegree: list[int], edges: Sequence[tuple[int, int, int]]) -> str:
        before = {v: u for u, v, _ in edges if indegree[u] > 0 and indegree[v] > 0}
        return cycle_text(
            next(iter(before)), before.__getitem__, lambda n: repr(self._nodes[n].name)
        )

    def _freeze(
        self, nodes: list[Node], edges: list[tuple[int, int, int]], position: np.ndarray
    ) -> OpGraph:
        def column(attribute: str, dtype: type) -> np.ndarray:
            try:
                return np.array([getattr(n, attribute) for n in nodes], dtype)
            except OverflowError as error:
                raise GraphError(
                    f"graph {self.name!r}: the {attribute} of a node is beyond {dtype.__name__}"
                ) from error

        columns: dict[str, Any] = {name: column(name, dtype) for name, dtype in _COLUMNS.items()}
        ends = np.array(edges, np.int64).reshape(-1, 3)
        sent = np.array([self._edges[e] for e in edges], np.float64)
        senders, receivers = position[ends[:, 0]], position[ends[:, 1]]
        by_place = np.lexsort((ends[:, 2], receivers, senders))
        return OpGraph(
            name=self.name,
            names=tuple(n.name for n in nodes),
            op_type=tuple(n.op_type for n in nodes),
            **columns,
            **_tied_weights(nodes),
            output_shape=_padded_shapes(self.name, nodes),
            senders=senders[by_place].astype(np.int32),
            receivers=receivers[by_place].astype(np.int32),
            edge_bytes=sent[by_place],
            edge_output=ends[by_place, 2].astype(np.int32),
            source=tuple(n.source for n in nodes),
            seconds=_profiles(self.name, nodes),
            transfer_seconds=_where_known(
                nodes, "transfer_seconds", np.float64, lambda seconds: seconds or 0.0
            ),
            meta=self.meta,
            geometry=_where_known(nodes, "geometry", np.float64, geometry_row),
            element_type=_where_known(nodes, "element_type", np.int8, int),
        )


def cycle_text(node: int, before: Callable[[int], int], name: Callable[[int], str]) -> str:
    """Return ``a -> b -> a`` for the cycle that the nodes ``before`` the given one lead into."""
    places: dict[int, int] = {}
    while node not in places:
        places[node] = len(places)
        node = before(node)
    names = [name(n) for n in reversed(list(places)[places[node] :])]
    shown = names if len(names) <= 8 else [*names[:4], "…", *names[-3:]]
    return " -> ".join([*shown, names[0]])


def _padded_shapes(graph: str, nodes: list[Node]) -> np.ndarray:
    rank = max((len(n.output_shape) for n in nodes), default=0)
    shapes = np.full((len(nodes), rank), NO_DIM, np.int64)
    for i, node in enumerate(nodes):
        try:
            shapes[i, : len(node.output_shape)] = node.output_shape
        except OverflowError as error:
            raise GraphError(
                f"graph {graph!r}: node {node.name!r} has output_shape {node.output_shape}, of "
                "which an extent does not fit 64 bits"
            ) from error
    return shapes


def _tied_weights(nodes: list[Node]) -> dict[str, np.ndarray]:
    """The tied fields of `OpGraph`: arrays that at least two nodes read, in order of first use."""
    reads = [list(node.weight_arrays.items()) for node in nodes]
    readers = Counter(array for arrays in reads for array in arrays)
    number: dict[tuple[str, float], int] = {}
    pairs: list[tuple[int, int]] = []
    for node, arrays in enumerate(reads):
        tied = (number.setdefault(a, len(number)) for a in arrays if readers[a] > 1 and a[1] > 0)
        pairs += [(node, array) for array in sorted(tied)]
    ends = np.array(pairs, np.int32).reshape(-1, 2)
    sizes = np.array([size for _, size in number], np.float64)
    return {"tied_node": ends[:, 0], "tied_array": ends[:, 1], "tied_bytes": sizes}


def _profiles(graph: str, nodes: list[Node]) -> dict[str, np.ndarray]:
    kinds = sorted({kind for n in nodes for kind in n.seconds})
    for node in nodes:
        missing = [kind for kind in kinds if kind not in node.seconds]
        if missing:
            raise GraphError(
                f"graph {graph!r}: node {node.name!r} has no seconds for {missing[0]!r}"
            )
    return {kind: np.array([n.seconds[kind] for n in nodes], np.float64) for kind in kinds}


def _where_known(
    nodes: list[Node], attribute: str, dtype: type, row: Callable[[Any], Any]
) -> np.ndarray | None:
    """Return an attribute of all nodes, as ``row`` writes it; None where no node has it."""
    values = [getattr(node, attribute) for node in nodes]
    if all(value is None or value is ElementType.UNKNOWN for value in values):
        return None
    return np.array(list(map(row, values)), dtype)
