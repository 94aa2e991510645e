"""Queues of the replay: ready jobs, the highest priority first, and events, the soonest first.

Binary heaps in flat arrays of `ReplayState` ``s``. The heaps of ready jobs share one array, one
heap for each pool: heap ``r`` begins at ``offset[r]`` and holds ``size[r]`` jobs.
"""

from __future__ import annotations

from typing import no_type_check

from go_rl.core.compiled_struct import compiled


@compiled
@no_type_check
def clear_queues(jobs, s, count) -> None:
    """No job of ``count`` is ready, nothing happens; each pool has room for its jobs."""
    s.offset[:], s.size[:], s.events[0] = 0, 0, 0
    for j in range(count):
        if jobs.pieces[j] > 0:
            s.offset[jobs.pool[j] + 1] += 1
    for r in range(len(s.size)):
        s.offset[r + 1] += s.offset[r]


@compiled
@no_type_check
def _sooner(priority, i, j):
    """Whether job ``i`` runs before job ``j`` when both are ready."""
    return priority[i] > priority[j] or (priority[i] == priority[j] and i < j)


@compiled
@no_type_check
def push_job(priority, s, r, j) -> None:
    """Add job ``j`` to the heap of pool ``r``."""
    heap, base, i = s.heap, s.offset[r], s.size[r]
    s.size[r] = i + 1
    while i > 0:
        up = (i - 1) >> 1
        if not _sooner(priority, j, heap[base + up]):
            break
        heap[base + i] = heap[base + up]
        i = up
    heap[base + i] = j


@compiled
@no_type_check
def pop_job(priority, s, r) -> None:
    """Take the most urgent job off the heap of pool ``r``."""
    heap, base, n = s.heap, s.offset[r], s.size[r] - 1
    s.size[r] = n
    if n == 0:
        return
    j, i = heap[base + n], 0
    while True:
        child = 2 * i + 1
        if child >= n:
            break
        if child + 1 < n and _sooner(priority, heap[base + child + 1], heap[base + child]):
            child += 1
        if not _sooner(priority, heap[base + child], j):
            break
        heap[base + i] = heap[base + child]
        i = child
    heap[base + i] = j


@compiled
@no_type_check
def add_event(s, time, piece) -> None:
    """Add an event at ``time``."""
    times, what, i = s.times, s.what, s.events[0]
    s.events[0] = i + 1
    while i > 0:
        up = (i - 1) >> 1
        if times[up] <= time:
            break
        times[i], what[i] = times[up], what[up]
        i = up
    times[i], what[i] = time, piece


@compiled
@no_type_check
def drop_event(s) -> None:
    """Take the soonest event off."""
    times, what, n = s.times, s.what, s.events[0] - 1
    s.events[0] = n
    time, piece, i = times[n], what[n], 0
    while True:
        child = 2 * i + 1
        if child >= n:
            break
        if child + 1 < n and times[child + 1] < times[child]:
            child += 1
        if times[child] >= time:
            break
        times[i], what[i] = times[child], what[child]
        i = child
    if n > 0:
        times[i], what[i] = time, piece
