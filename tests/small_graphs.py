"""Graphs of nodes and edges that a test lists."""

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

from go_rl.core import OpGraph
from go_rl.graphs.readers.graph_builder import GraphBuilder, Node


def graph_of(
    nodes: Iterable[Node],
    edges: Iterable[tuple[Any, ...]] = (),
    name: str = "small",
    meta: Mapping[str, Any] | None = None,
) -> OpGraph:
    """Edges join nodes by their places: (sender, receiver, bytes), and the number of a result."""
    builder = GraphBuilder(name, dict(meta or {}))
    for node in nodes:
        builder.add_node(node)
    for edge in edges:
        builder.add_edge(*edge)
    return builder.build()


def row_of(nodes: Iterable[Node], num_bytes: float, name: str = "chain") -> OpGraph:
    """Each node reads the one before it, by an edge of so many bytes."""
    listed = list(nodes)
    return graph_of(listed, [(u, v, num_bytes) for u, v in pairwise(range(len(listed)))], name)


def edges_of(graph: OpGraph) -> dict[tuple[Any, Any], tuple[float, int]]:
    """Bytes, and the number of the result, by the names of sender and receiver."""
    columns = (graph.senders, graph.receivers, graph.edge_bytes, graph.edge_output)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return {(graph.names[u], graph.names[v]): (size, output) for u, v, size, output in rows}
