"""The tensors of a graph: each result of a node that others read, with its size and readers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from go_rl.core import Problem


class TensorRows(NamedTuple):
    """``N`` nodes, ``T`` tensors in order of (producer, result number), ``E`` edges."""

    first: np.ndarray
    """[N + 1] first tensor of each node."""
    size: np.ndarray
    """[T] bytes: the largest of the edges that carry it."""
    use_ptr: np.ndarray
    """[T + 1] rows of `user`."""
    user: np.ndarray
    """[E] consumers of each tensor, ascending."""
    made: np.ndarray
    """[N] bytes of all tensors of a node."""


def tensor_rows(problem: Problem) -> TensorRows:
    """Group a problem's edges into tensors."""
    graph = problem.graph
    order = np.lexsort((graph.receivers, graph.edge_output, graph.senders))
    sender, output = graph.senders[order], graph.edge_output[order]
    fresh = np.r_[True, (sender[1:] != sender[:-1]) | (output[1:] != output[:-1])][: len(order)]
    starts = np.flatnonzero(fresh)
    size = np.maximum.reduceat(problem.edge_bytes[order], starts) if starts.size else np.zeros(0)
    made = np.zeros(graph.num_nodes)
    np.add.at(made, sender[starts], size)
    return TensorRows(
        first=np.searchsorted(sender[starts], np.arange(graph.num_nodes + 1)).astype(np.int64),
        size=size,
        use_ptr=np.r_[starts, len(order)].astype(np.int64),
        user=graph.receivers[order],
        made=made,
    )
