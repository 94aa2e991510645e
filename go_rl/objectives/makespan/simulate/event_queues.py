"""Queues of the replay: ready jobs, the highest priority first, and events, the soonest first.

Arrays of `ReplayState` ``s``. Ready jobs lie in a `priority_heap` for each pool, events in a binary
heap of their own.
"""

from __future__ import annotations

from typing import no_type_check

from go_rl.core.compiled_struct import compiled


@compiled
@no_type_check
def clear_queues(jobs, s, engines, pools) -> None:
    """No job is ready, nothing happens; each of ``pools`` has room for its jobs. The first
    ``engines`` of them run kernels."""
    s.events[0], s.offset[0] = 0, 0
    for r in range(pools):
        s.size[r] = 0
        s.offset[r + 1] = 0 if r < engines else jobs.passing[r - engines]
    for j in range(len(jobs.device)):
        if jobs.pieces[j] > 0:
            s.offset[jobs.pool[j] + 1] += 1
    for r in range(pools):
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
