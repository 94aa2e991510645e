"""Depth-first topological orders: one branch is followed to its end before the next begins."""

from __future__ import annotations

from typing import no_type_check

import numpy as np
from jaxtyping import Float64, Int, Int32

from go_rl.core.compiled_struct import compiled


def depth_first_order(
    pred_ptr: Int[np.ndarray, "rows"],
    succ_ptr: Int[np.ndarray, "rows"],
    succ: Int[np.ndarray, "edges"],
    rank: Float64[np.ndarray, "M"],
) -> Int32[np.ndarray, "M"]:
    """Return [M] items: the newest ready one first; of those made ready together, the lowest rank.

    With the rows of successors and predecessors exchanged, the order starts from the sinks.
    """
    waiting, stack = np.diff(pred_ptr).astype(np.int64), np.empty(len(rank), np.int64)
    # Arrays of one type: compiled once.
    succ_ptr, succ = (np.ascontiguousarray(each, np.int64) for each in (succ_ptr, succ))
    rank = np.ascontiguousarray(rank)
    roots = np.flatnonzero(waiting == 0)
    stack[: len(roots)] = roots[np.argsort(-rank[roots], kind="stable")]
    order = np.empty(len(rank), np.int32)
    _depth_first(succ_ptr, succ, rank, waiting, stack, len(roots), order)
    return order


@compiled
@no_type_check
def _depth_first(succ_ptr, succ, rank, waiting, stack, top: int, order) -> None:
    """``stack`` begins with the ``top`` roots; ``waiting`` [M]: predecessors not yet taken."""
    done = 0
    while top > 0:
        top -= 1
        v = stack[top]
        order[done] = v
        done += 1
        first = top
        for i in range(succ_ptr[v], succ_ptr[v + 1]):
            w = succ[i]
            waiting[w] -= 1
            if waiting[w] == 0:
                at = top
                while at > first and rank[stack[at - 1]] < rank[w]:
                    stack[at] = stack[at - 1]
                    at -= 1
                stack[at] = w
                top += 1
