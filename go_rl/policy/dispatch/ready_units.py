"""Ready units of a rollout: a window of candidates, and a heap of those that wait."""

from __future__ import annotations

from typing import no_type_check

from numba import njit

from go_rl.policy.dispatch.features import WINDOW


@njit(cache=True, nogil=True)
@no_type_check
def join(tail, window, inside, heap, waiting, u):
    """A unit becomes ready: a candidate if there is room or its rank is above the lowest."""
    if inside < WINDOW:
        window[inside] = u
        return inside + 1, waiting
    lowest = _lowest(tail, window, inside)
    if tail[u] > tail[window[lowest]]:
        u, window[lowest] = window[lowest], u
    return inside, _push(tail, heap, waiting, u)


@njit(cache=True, nogil=True)
@no_type_check
def pull_next(tail, heap, size):
    """Take the highest rank from the heap."""
    top = heap[0]
    size -= 1
    moved, i = heap[size], 0
    while 2 * i + 1 < size:
        child = 2 * i + 1
        if child + 1 < size and tail[heap[child + 1]] > tail[heap[child]]:
            child += 1
        if tail[moved] >= tail[heap[child]]:
            break
        heap[i] = heap[child]
        i = child
    heap[i] = moved
    return top, size


@njit(cache=True, nogil=True)
@no_type_check
def _lowest(tail, window, inside):
    lowest = 0
    for k in range(1, inside):
        if tail[window[k]] < tail[window[lowest]]:
            lowest = k
    return lowest


@njit(cache=True, nogil=True)
@no_type_check
def _push(tail, heap, size, u):
    """Add to a binary heap, the highest rank first."""
    i = size
    while i > 0:
        parent = (i - 1) // 2
        if tail[heap[parent]] >= tail[u]:
            break
        heap[i] = heap[parent]
        i = parent
    heap[i] = u
    return size + 1
