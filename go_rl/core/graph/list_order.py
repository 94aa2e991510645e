"""List scheduling: the topological order that takes the ready item of the lowest score first."""

from __future__ import annotations

from typing import no_type_check

import numpy as np
from jaxtyping import Float64, Int, Int64

from go_rl.core.compiled_struct import compiled
from go_rl.core.graph.priority_heap import pop, push


def list_order(
    pred_ptr: Int[np.ndarray, "rows"],
    succ_ptr: Int[np.ndarray, "rows"],
    succ: Int[np.ndarray, "edges"],
    score: Float64[np.ndarray, "M"],
) -> Int64[np.ndarray, "M"]:
    """Return [M] items in topological order, the earlier one among equal scores."""
    heap, order = np.empty(len(score), np.int64), np.empty(len(score), np.int64)
    # Arrays of one type: compiled once.
    succ_ptr, succ = (np.ascontiguousarray(each, np.int64) for each in (succ_ptr, succ))
    waiting, priority = np.diff(pred_ptr).astype(np.int64), np.ascontiguousarray(-score)
    _list_order(succ_ptr, succ, priority, waiting, heap, order)
    return order


@compiled
@no_type_check
def _list_order(succ_ptr, succ, priority, waiting, heap, order) -> None:
    """``waiting`` [M]: predecessors not yet taken; ``heap`` [M]: the ready items."""
    first = size = np.int64(0)
    for v in range(len(order)):
        if waiting[v] == 0:
            size = push(heap, first, size, priority, v)
    for done in range(len(order)):
        v = heap[0]
        size = pop(heap, first, size, priority)
        order[done] = v
        for i in range(succ_ptr[v], succ_ptr[v + 1]):
            w = succ[i]
            waiting[w] -= 1
            if waiting[w] == 0:
                size = push(heap, first, size, priority, w)
