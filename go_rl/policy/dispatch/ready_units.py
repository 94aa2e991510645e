"""Ready units of a rollout: a window of candidates, and a heap of those that wait.

``a``: `DispatchArrays`, ``s``: `RolloutState`.
"""

from __future__ import annotations

from typing import no_type_check

from go_rl.core.compiled_struct import compiled
from go_rl.policy.dispatch.features import WINDOW


@compiled
@no_type_check
def join(a, s, u) -> None:
    """A unit becomes ready: a candidate if there is room or its rank is above the lowest."""
    inside = s.candidates[0]
    if inside < WINDOW:
        s.window[inside] = u
        s.candidates[0] = inside + 1
        return
    lowest = 0
    for k in range(1, inside):
        if a.tail[s.window[k]] < a.tail[s.window[lowest]]:
            lowest = k
    if a.tail[u] > a.tail[s.window[lowest]]:
        u, s.window[lowest] = s.window[lowest], u
    _push(a.tail, s, u)


@compiled
@no_type_check
def leave(a, s, pick) -> None:
    """The candidate in place ``pick`` was selected; those that wait fill the window again."""
    s.candidates[0] -= 1
    s.window[pick] = s.window[s.candidates[0]]
    while s.waiting[0] > 0 and s.candidates[0] < WINDOW:
        s.window[s.candidates[0]] = _pop(a.tail, s)
        s.candidates[0] += 1


@compiled
@no_type_check
def _push(tail, s, u) -> None:
    i = s.waiting[0]
    while i > 0:
        parent = (i - 1) // 2
        if tail[s.heap[parent]] >= tail[u]:
            break
        s.heap[i] = s.heap[parent]
        i = parent
    s.heap[i] = u
    s.waiting[0] += 1


@compiled
@no_type_check
def _pop(tail, s):
    """Take the highest rank from the heap."""
    heap, size = s.heap, s.waiting[0] - 1
    top, moved, i = heap[0], heap[size], 0
    while 2 * i + 1 < size:
        child = 2 * i + 1
        if child + 1 < size and tail[heap[child + 1]] > tail[heap[child]]:
            child += 1
        if tail[moved] >= tail[heap[child]]:
            break
        heap[i] = heap[child]
        i = child
    heap[i] = moved
    s.waiting[0] = size
    return top
