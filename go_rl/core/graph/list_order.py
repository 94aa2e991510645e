"""List scheduling: the topological order that takes the ready item of the lowest score first."""

from __future__ import annotations

from typing import no_type_check

import numpy as np
from jaxtyping import Float64, Int, Int64

from go_rl.core.compiled_struct import compiled


def list_order(
    pred_ptr: Int[np.ndarray, "rows"],
    succ_ptr: Int[np.ndarray, "rows"],
    succ: Int[np.ndarray, "edges"],
    score: Float64[np.ndarray, "M"],
) -> Int64[np.ndarray, "M"]:
    """Return [M] items in topological order, the earlier one among equal scores."""
    heap, order = np.empty(len(score), np.int64), np.empty(len(score), np.int64)
    _list_order(succ_ptr, succ, score, np.diff(pred_ptr), heap, order)
    return order


@compiled
@no_type_check
def _list_order(succ_ptr, succ, score, waiting, heap, order) -> None:
    """``waiting`` [M]: predecessors not yet taken; ``heap`` [M]: the ready items, a binary heap."""
    size = np.int64(0)
    for v in range(len(score)):
        if waiting[v] == 0:
            size = _push(heap, size, score, v)
    for done in range(len(order)):
        v = heap[0]
        size = _pop(heap, size, score)
        order[done] = v
        for i in range(succ_ptr[v], succ_ptr[v + 1]):
            w = np.int64(succ[i])
            waiting[w] -= 1
            if waiting[w] == 0:
                size = _push(heap, size, score, w)


@compiled
@no_type_check
def _push(heap, size: int, score, item: int) -> int:
    """Add an item; return the new size."""
    at = size
    while at > 0:
        parent = (at - 1) >> 1
        if not _before(score, item, heap[parent]):
            break
        heap[at] = heap[parent]
        at = parent
    heap[at] = item
    return size + 1


@compiled
@no_type_check
def _pop(heap, size: int, score) -> int:
    """Take the first item away; return the new size."""
    size -= 1
    item, at = heap[size], 0
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and _before(score, heap[child + 1], heap[child]):
            child += 1
        if not _before(score, heap[child], item):
            break
        heap[at] = heap[child]
        at = child
    heap[at] = item
    return size


@compiled
@no_type_check
def _before(score, a: int, b: int) -> bool:
    return score[a] < score[b] or (score[a] == score[b] and a < b)
