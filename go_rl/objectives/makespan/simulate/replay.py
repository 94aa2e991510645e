"""Event-driven execution of a graph on fully connected devices: placement, order and fusion.

A kernel is one node, or the nodes fused with it, named by the lowest (its leader). A *transfer*
carries a tensor to one other device, once, however many kernels read it there. Kernels run on the
engine pool of their device, transfers on the link of their ordered pair of devices, one at a time.
At every moment at which something ends, first everything that ends is recorded; then every idle
engine and link starts, of what is ready for it, the kernel or transfer with the highest priority
(ties: the lower number). A transfer has the priority of its most urgent reader.

Memory of a device: weights (tied ones once); each tensor from the start of its producer (of its
transfer, on another device) until its last reader there and all its transfers have ended; results
of the model to the end. Inputs and constants cost no time and lie on every reader's device from the
start. docs/objectives.md has the definition; `go_rl.verify` checks with its own.
"""

from __future__ import annotations

from typing import NamedTuple, no_type_check

import numpy as np
from numba import njit

from go_rl.core.evaluation import ILLEGAL, OK, OUT_OF_MEMORY, UNSUPPORTED
from go_rl.objectives.makespan.simulate.event_queues import (
    add_event,
    drop_event,
    pop_job,
    push_job,
    ready_heaps,
)
from go_rl.objectives.makespan.simulate.jobs import NOBODY, lay_out


class Trace(NamedTuple):
    """Trace of one replay; written by the compiled replay."""

    start: np.ndarray
    """[P] start of each piece, in order of starting."""
    end: np.ndarray
    """[P] when its engine was free again."""
    job: np.ndarray
    """[P]."""
    slot: np.ndarray
    """[P] engine of the pool."""
    peak: np.ndarray
    """[D] bytes."""
    weights: np.ndarray
    """[D] bytes."""


@njit(cache=True, nogil=True)
@no_type_check
def run(a, device, jobs, trace):
    """Replay the jobs; return the makespan (inf when kernels wait for each other) and the number of
    pieces in the trace.

    State beside the arrays of `Jobs` and `Trace`, over ``J`` jobs, ``R`` pools and links, ``D``
    devices:

        heap      [J]     ready jobs, one binary heap for each pool: ``offset`` [R], ``size`` [R]
        idle      [R]     bit set of free engines
        to_start  [J]     pieces not yet started
        running   [J]     pieces not yet ended
        live      [D]     bytes in use
        times, what       heap of events: the end of a piece, or the arrival of a transfer
                          (-1 - job); ``events`` of them
        dirty     [R]     pools to look at in this moment, ``marks`` of them; ``is_dirty`` [R]
        started, ended    pieces started, jobs ended; ``todo`` jobs in all
    """
    # Fields are read once: each reading counts a reference, atomically, in the innermost loops.
    priority, pool, pieces, seconds = jobs.priority, jobs.pool, jobs.pieces, jobs.seconds
    waits, copy_left, copy_bytes = jobs.waits, jobs.copy_left, jobs.copy_bytes
    copy_home, copy_device, made_head = jobs.copy_home, jobs.copy_device, jobs.made_head
    made_next, use_kernel, use_copy = jobs.made_next, jobs.use_kernel, jobs.use_copy
    readers_head, readers_next = jobs.readers_head, jobs.readers_next
    reads_head, reads_next = jobs.reads_head, jobs.reads_next
    scratch, kept = jobs.scratch, jobs.kept
    starts, ends, what_job, slots = trace.start, trace.end, trace.job, trace.slot
    latency, engines, peak = a.latency, a.engines, trace.peak
    nodes, devices, count = len(device), len(a.capacity), len(pool)
    pools = len(engines) + devices * devices
    offset, heap, size = ready_heaps(pool, pieces, pools)
    idle = np.ones(pools, np.int64)
    for r in range(len(engines)):
        idle[r] = (1 << engines[r]) - 1
    to_start, running = pieces.copy(), pieces.copy()
    # Memory before anything runs: weights, inputs and constants.
    live = np.zeros(devices)
    resident_weights(a, device, trace.weights)
    live[:] = trace.weights
    for c in range(jobs.copies):
        if jobs.copy_kernel[c] == NOBODY:
            live[copy_device[c]] += copy_bytes[c]
    peak[:] = live
    # What waits for nothing is ready; every pool is to be looked at.
    room = count + engines.sum()
    times, what = np.empty(room), np.empty(room, np.int64)
    events, started, ended, todo = 0, 0, 0, 0
    dirty, is_dirty, marks = np.empty(pools, np.int64), np.zeros(pools, np.bool_), 0
    for j in range(count):
        if pieces[j] > 0:
            todo += 1
            if waits[j] == 0:
                push_job(heap, offset[pool[j]], size, pool[j], priority, j)
    for r in range(pools):
        dirty[r], is_dirty[r] = r, True
    marks, now, makespan = pools, 0.0, 0.0
    while True:
        # Idle engines and links start what is most urgent.
        for i in range(marks):
            r = dirty[i]
            is_dirty[r] = False
            while idle[r] != 0 and size[r] > 0:
                j = heap[offset[r]]
                if to_start[j] == pieces[j] and j >= nodes:
                    live[copy_device[j - nodes]] += copy_bytes[j - nodes]
                elif to_start[j] == pieces[j]:
                    live[device[j]] += _memory_taken(j, scratch, kept, made_head, made_next,
                                                     copy_home, copy_bytes)  # fmt: skip
                to_start[j] -= 1
                if to_start[j] == 0:
                    pop_job(heap, offset[r], size, r, priority)
                slot = _lowest(idle[r])
                idle[r] &= ~(1 << slot)
                end = now + seconds[j]
                starts[started], ends[started] = now, end
                what_job[started], slots[started] = j, slot
                events = add_event(times, what, events, end, started)
                started += 1
        marks = 0
        for d in range(devices):
            peak[d] = max(peak[d], live[d])
        if events == 0:
            break
        # Everything that ends at the next moment.
        now = times[0]
        while events > 0 and times[0] == now:
            piece = what[0]
            events = drop_event(times, what, events)
            if piece >= 0:
                j = what_job[piece]
                r = pool[j]
                idle[r] |= 1 << slots[piece]
                if not is_dirty[r]:
                    dirty[marks], is_dirty[r] = r, True
                    marks += 1
                if j >= nodes and latency > 0:
                    events = add_event(times, what, events, now + latency, -1 - j)
                    continue
                running[j] -= 1
                if running[j] > 0:
                    continue
            else:
                j = -1 - piece
            # A job has ended; what it held is released.
            ended += 1
            makespan = max(makespan, now)
            if j >= nodes:
                served = j - nodes
                _release(copy_home[served], copy_left, copy_bytes, copy_device, live)
            else:
                live[device[j]] -= scratch[j]
                use = reads_head[j]
                while use != NOBODY:
                    _release(use_copy[use], copy_left, copy_bytes, copy_device, live)
                    use = reads_next[use]
                served = made_head[j]
            # Whoever waited for its results becomes ready: transfers of copies, readers at home.
            while served != NOBODY:
                if j < nodes and copy_home[served] != served:
                    waits[nodes + served] = 0
                    marks = _enqueue(nodes + served, pool, priority, offset, heap, size,
                                     dirty, is_dirty, marks)  # fmt: skip
                else:
                    use = readers_head[served]
                    while use != NOBODY:
                        kernel = use_kernel[use]
                        waits[kernel] -= 1
                        if waits[kernel] == 0:
                            marks = _enqueue(kernel, pool, priority, offset, heap, size,
                                             dirty, is_dirty, marks)  # fmt: skip
                        use = readers_next[use]
                served = made_next[served] if j < nodes else NOBODY
    return makespan if ended == todo else np.inf, started


@njit(cache=True, nogil=True, inline="always")
@no_type_check
def _release(c, copy_left, copy_bytes, copy_device, live):
    """One reader or transfer of a copy has ended; the last one gives the memory back."""
    copy_left[c] -= 1
    if copy_left[c] == 0:
        live[copy_device[c]] -= copy_bytes[c]


@njit(cache=True, nogil=True, inline="always")
@no_type_check
def _memory_taken(j, scratch, kept, made_head, made_next, copy_home, copy_bytes):
    """Bytes that a kernel takes on its device when it starts."""
    taken = scratch[j] + kept[j]
    c = made_head[j]
    while c != NOBODY:
        if copy_home[c] == c:
            taken += copy_bytes[c]
        c = made_next[c]
    return taken


@njit(cache=True, nogil=True, inline="always")
@no_type_check
def _enqueue(j, pool, priority, offset, heap, size, dirty, is_dirty, marks):
    """Make a job ready; return the number of pools to look at."""
    r = pool[j]
    push_job(heap, offset[r], size, r, priority, j)
    if not is_dirty[r]:
        dirty[marks], is_dirty[r] = r, True
        marks += 1
    return marks


@njit(cache=True, nogil=True, inline="always")
@no_type_check
def _lowest(word):
    slot = 0
    while (word >> slot) & 1 == 0:
        slot += 1
    return slot


@njit(cache=True, nogil=True)
@no_type_check
def resident_weights(a, device, weights):
    """Write [D] bytes of weights on each device, tied ones once."""
    weights[:] = 0.0
    seen = np.zeros(max(len(a.tied_bytes), 1), np.uint64)
    for n in range(len(device)):
        weights[device[n]] += a.own_bytes[n]
        bit = np.uint64(1) << np.uint64(device[n])
        for i in range(a.tied_ptr[n], a.tied_ptr[n + 1]):
            t = a.tied_array[i]
            if seen[t] & bit == 0:
                seen[t] |= bit
                weights[device[n]] += a.tied_bytes[t]


@njit(cache=True, nogil=True)
@no_type_check
def replay(a, device, priority, leader, seconds, trace):
    """Return (status, makespan, pieces started) of one plan; ``seconds`` [N] of each kernel."""
    for n in range(len(device)):
        if leader[n] == n and not np.isfinite(seconds[n]):
            return UNSUPPORTED, np.inf, 0
    jobs = lay_out(a, device, priority, leader, seconds)
    makespan, started = run(a, device, jobs, trace)
    if makespan == np.inf:
        return ILLEGAL, makespan, started
    for d in range(len(a.capacity)):
        if trace.peak[d] > a.capacity[d] * (1 + 1e-9):
            return OUT_OF_MEMORY, makespan, started
    return OK, makespan, started
