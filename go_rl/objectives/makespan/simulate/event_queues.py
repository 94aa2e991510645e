"""Queues of the replay: ready jobs, the highest priority first, and events, the soonest first.

Arrays of `ReplayState` ``s``. Ready jobs lie in a `priority_heap` for each pool, events in a binary
heap of their own.
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
