"""Blocks of nodes as the nodes of a smaller graph: their topological numbers and their rows."""

from __future__ import annotations

import numpy as np
from jaxtyping import Int, Int64

from go_rl.core.graph.list_order import list_order


def topological_numbers(
    senders: Int[np.ndarray, "E"], receivers: Int[np.ndarray, "E"], component: Int[np.ndarray, "N"]
) -> Int64[np.ndarray, "C"]:
    """Return [C] the place of each component in a topological order of components: the list
    schedule by first member (neither the first nor the last member alone would ascend).

    ``component`` [N] numbers the strongly connected components of the graph's nodes.
    """
    count = int(component.max()) + 1
    first = np.full(count, len(component))
    np.minimum.at(first, component, np.arange(len(component)))
    ends = np.stack([component[senders], component[receivers]])
    ends = np.unique(ends[:, ends[0] != ends[1]], axis=1)
    succ_ptr = np.searchsorted(ends[0], np.arange(count + 1))
    pred_ptr = np.searchsorted(np.sort(ends[1]), np.arange(count + 1))
    number = np.empty(count, np.int64)
    number[list_order(pred_ptr, succ_ptr, ends[1], first.astype(np.float64))] = np.arange(count)
    return number


def sorted_rows(
    keys: Int[np.ndarray, "X"], values: Int[np.ndarray, "X"], rows: int
) -> tuple[Int64[np.ndarray, "R"], Int64[np.ndarray, "X"]]:
    """Return compressed rows ``(offsets [rows + 1], values [X])``; values ascend within a row."""
    offsets = np.zeros(rows + 1, np.int64)
    np.cumsum(np.bincount(keys, minlength=rows), out=offsets[1:])
    return offsets, values[np.lexsort((values, keys))].astype(np.int64)


def undirected_rows(
    one: Int[np.ndarray, "X"], two: Int[np.ndarray, "X"], rows: int
) -> tuple[Int64[np.ndarray, "R"], Int64[np.ndarray, "Y"], Int64[np.ndarray, "Y"]]:
    """Return compressed rows of neighbours ``(offsets [rows + 1], neighbours [2 X], edges [2 X])``,
    ascending, for edges between ``one`` and ``two``."""
    ends, others = np.concatenate([one, two]), np.concatenate([two, one])
    order = np.lexsort((others, ends))
    offsets = np.searchsorted(ends[order], np.arange(rows + 1)).astype(np.int64)
    return offsets, others[order].astype(np.int64), order % max(len(one), 1)
