"""Queues of the replay: ready jobs, the highest priority first, and events, the soonest first.

Binary heaps in flat arrays. The heaps of ready jobs share one array, one heap for each pool: heap
``r`` begins at ``offset[r]`` and holds ``size[r]`` jobs.
"""

from __future__ import annotations

from typing import no_type_check

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
@no_type_check
def ready_heaps(pool, pieces, pools):
    """Room for the ready jobs of every pool: offsets, one array, sizes."""
    room = np.zeros(pools + 1, np.int64)
    for j in range(len(pool)):
        if pieces[j] > 0:
            room[pool[j] + 1] += 1
    offset = np.cumsum(room)
    return offset, np.empty(offset[-1], np.int64), np.zeros(pools, np.int64)


@njit(cache=True, nogil=True, inline="always")
@no_type_check
def _sooner(priority, i, j):
    """Whether job ``i`` runs before job ``j`` when both are ready."""
    return priority[i] > priority[j] or (priority[i] == priority[j] and i < j)


@njit(cache=True, nogil=True, inline="always")
@no_type_check
def push_job(heap, base, size, r, priority, j):
    """Add job ``j`` to the heap of pool ``r``, which begins at ``base``."""
    i = size[r]
    size[r] += 1
    while i > 0:
        up = (i - 1) >> 1
        if not _sooner(priority, j, heap[base + up]):
            break
        heap[base + i] = heap[base + up]
        i = up
    heap[base + i] = j


@njit(cache=True, nogil=True, inline="always")
@no_type_check
def pop_job(heap, base, size, r, priority):
    """Take the most urgent job off the heap of pool ``r``."""
    size[r] -= 1
    n = size[r]
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


@njit(cache=True, nogil=True, inline="always")
@no_type_check
def add_event(times, what, events, time, piece):
    """Add an event at ``time``; return how many there are."""
    i = events
    while i > 0:
        up = (i - 1) >> 1
        if times[up] <= time:
            break
        times[i], what[i] = times[up], what[up]
        i = up
    times[i], what[i] = time, piece
    return events + 1


@njit(cache=True, nogil=True, inline="always")
@no_type_check
def drop_event(times, what, events):
    """Take the soonest event off; return how many are left."""
    n = events - 1
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
    return n
