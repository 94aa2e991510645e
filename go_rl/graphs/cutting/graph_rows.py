"""Rows of operator graphs with separate parts: a selection of them, or those of several graphs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Bool, Float64, Int64

from go_rl.core import FREE, GEOMETRY, NO_DIM, NO_TIED_WEIGHTS, OpGraph

COLUMNS = (
    "kind", "flops", "bytes_accessed", "output_bytes", "weight_bytes", "output_itemsize",
    "weight_itemsize", "is_output",
)  # fmt: skip
"""Node arrays of one dimension that parts keep; they forget colocation, tied weights, and element
types of all but products in other types than float32."""


def geometry_of(graph: OpGraph) -> Float64[np.ndarray, "N G"]:
    """Return [N, G] the geometry, all NaN where the graph has none."""
    if graph.geometry is None:
        return np.full((graph.num_nodes, len(GEOMETRY)), np.nan)
    return graph.geometry


def levels(graph: OpGraph) -> Int64[np.ndarray, "N"]:
    """Return [N] edges on the longest path that leads to each node; quick where paths are short."""
    level = np.zeros(graph.num_nodes, np.int64)
    while True:
        deeper = level.copy()
        np.maximum.at(deeper, graph.receivers, level[graph.senders] + 1)
        if np.array_equal(deeper, level):
            return level
        level = deeper


def graph_rows(graph: OpGraph, kept: Bool[np.ndarray, "N"]) -> OpGraph:
    """Return the part of a graph that is marked; no edge leaves it."""
    place, edges = np.cumsum(kept) - 1, kept[graph.senders]
    return _assembled(
        graph,
        op_type=tuple(graph.op_type[i] for i in np.flatnonzero(kept).tolist()),
        output_shape=graph.output_shape[kept],
        geometry=geometry_of(graph)[kept],
        element_type=graph.product_type[kept],
        senders=place[graph.senders[edges]],
        receivers=place[graph.receivers[edges]],
        edge_bytes=graph.edge_bytes[edges],
        edge_output=graph.edge_output[edges],
        **{name: getattr(graph, name)[kept] for name in COLUMNS},
    )


def joined_graphs(graphs: Sequence[OpGraph]) -> OpGraph:
    """Return all graphs as parts of one; at least one graph, of the first one's name."""
    first = np.cumsum([0, *(graph.num_nodes for graph in graphs)])
    rank = max(graph.output_shape.shape[1] for graph in graphs)
    return _assembled(
        graphs[0],
        op_type=tuple(t for graph in graphs for t in graph.op_type),
        output_shape=np.concatenate([_padded(graph.output_shape, rank) for graph in graphs]),
        geometry=np.concatenate([geometry_of(graph) for graph in graphs]),
        element_type=np.concatenate([graph.product_type for graph in graphs]),
        **{
            name: np.concatenate(
                [getattr(g, name) + i for g, i in zip(graphs, first, strict=False)]
            )
            for name in ("senders", "receivers")
        },
        **{
            name: np.concatenate([getattr(graph, name) for graph in graphs])
            for name in (*COLUMNS, "edge_bytes", "edge_output")
        },
    )


def _padded(shape: np.ndarray, rank: int) -> np.ndarray:
    return np.pad(shape, ((0, 0), (0, rank - shape.shape[1])), constant_values=NO_DIM)


def _assembled(
    like: OpGraph,
    op_type: tuple[str, ...],
    senders: np.ndarray,
    receivers: np.ndarray,
    **columns: np.ndarray,
) -> OpGraph:
    """A graph of these rows; nodes are named by their numbers."""
    count = len(op_type)
    return replace(
        like,
        names=tuple(range(count)),
        op_type=op_type,
        source=("",) * count,
        senders=senders.astype(np.int32),
        receivers=receivers.astype(np.int32),
        **NO_TIED_WEIGHTS,
        colocation=np.full(count, FREE, np.int32),
        is_backward=np.zeros(count, np.bool_),
        seconds={},
        transfer_seconds=None,
        meta={},
        **columns,
    )
