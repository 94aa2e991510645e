"""Event-driven execution of a graph on connected devices: placement, order and fusion.

A kernel is one node, or the nodes fused with it, named by the lowest (its leader). A *transfer*
carries a tensor to one other device, once, however many kernels read it there. Kernels run on the
engine pool of their device, transfers on the link of their ordered pair of devices, one at a time.
On a mesh a transfer takes the links of its route one after the other; the next one may start when
the first byte is there, so that an idle route costs each link's latency and the bytes once (virtual
cut-through; Kermani, Kleinrock, "Virtual cut-through: a new computer communication switching
technique", Computer Networks 1979).
At every moment at which something ends, first everything that ends is recorded; then every idle
engine and link starts, of what is ready for it, the kernel or transfer with the highest priority
(ties: the lower number). A transfer has the priority of its most urgent reader.

Memory of a device: weights (tied ones once); each tensor from the start of its producer (of its
transfer, on another device) until its last reader there and all its transfers have ended; results
of the model to the end. Inputs and constants cost no time and lie on every reader's device from the
start. docs/objectives.md has the definition; `go_rl.verify` checks with its own.
"""

from __future__ import annotations

from typing import no_type_check

import numpy as np

from go_rl.core.compiled_struct import compiled
from go_rl.core.evaluation import ILLEGAL, OK, OUT_OF_MEMORY, UNSUPPORTED
from go_rl.core.graph.priority_heap import pop, push
from go_rl.objectives.makespan.simulate.event_queues import add_event, clear_queues, drop_event
from go_rl.objectives.makespan.simulate.jobs import NOBODY, lay_out


@compiled
@no_type_check
def replay(a, device, priority, leader, seconds, jobs, s):
    """Return (status, makespan, pieces started) of one plan; ``seconds`` [N] of each kernel.

    ``a``: `ReplayArrays`; ``jobs``: `Jobs` and ``s``: `ReplayState`, overwritten.
    """
    for n in range(len(device)):
        if leader[n] == n and not np.isfinite(seconds[n]):
            return UNSUPPORTED, np.inf, 0
    lay_out(a, device, priority, leader, seconds, jobs)
    makespan = _run(a, jobs, s)
    if makespan == np.inf:
        return ILLEGAL, makespan, s.started[0]
    for d in range(len(a.capacity)):
        if s.peak[d] > a.capacity[d] * (1 + 1e-9):
            return OUT_OF_MEMORY, makespan, s.started[0]
    return OK, makespan, s.started[0]


@compiled
@no_type_check
def _run(a, jobs, s):
    """Replay the jobs; return the makespan, inf when kernels wait for each other."""
    todo = _begin(a, jobs, s)
    ended, now, makespan = 0, 0.0, 0.0
    while True:
        # Idle engines and links start what is most urgent.
        for i in range(s.marks[0]):
            _start_ready(jobs, s, s.dirty[i], now)
        s.marks[0] = 0
        for d in range(len(s.live)):
            s.peak[d] = max(s.peak[d], s.live[d])
        if s.events[0] == 0:
            break
        # Everything that ends at the next moment.
        now = s.times[0]
        while s.events[0] > 0 and s.times[0] == now:
            j = _next_end(a, jobs, s, now)
            if j != NOBODY:
                ended, makespan = ended + 1, now
                _release(jobs, s, j)
                _serve(jobs, s, j)
    return makespan if ended == todo else np.inf


@compiled
@no_type_check
def _begin(a, jobs, s):
    """Nothing has run: memory holds weights, inputs and constants; what waits for nothing is ready,
    and every pool is to be looked at. Return the number of jobs."""
    _resident_weights(a, jobs, s)
    for d in range(len(s.live)):
        s.live[d] = s.weights[d]
    for c in range(jobs.copies[0]):
        if jobs.copy_kernel[c] == NOBODY:
            s.live[jobs.copy_device[c]] += jobs.copy_bytes[c]
    for d in range(len(s.live)):
        s.peak[d] = s.live[d]
    s.started[0], s.marks[0] = 0, 0
    pools = len(a.engines) + jobs.channels[0]
    for r in range(pools):
        s.idle[r] = (1 << a.engines[r]) - 1 if r < len(a.engines) else 1
        s.is_dirty[r] = False
        _look_at(s, r)
    count, todo = len(jobs.device) + jobs.copies[0], 0
    clear_queues(jobs, s, len(a.engines), pools)
    for c in range(jobs.copies[0]):
        s.at[c] = jobs.copy_device[jobs.copy_home[c]]
    for j in range(count):
        s.to_start[j], s.running[j] = jobs.pieces[j], jobs.pieces[j]
        if jobs.pieces[j] > 0:
            todo += 1
            if jobs.waits[j] == 0:
                _push_ready(jobs, s, j)
    return todo


@compiled
@no_type_check
def _start_ready(jobs, s, r, now) -> None:
    """Idle engines of pool ``r`` start its ready jobs."""
    s.is_dirty[r] = False
    while s.idle[r] != 0 and s.size[r] > 0:
        j = s.heap[s.offset[r]]
        if s.to_start[j] == jobs.pieces[j]:
            _take_memory(jobs, s, j)
        s.to_start[j] -= 1
        if j >= len(jobs.device):
            s.size[r] = pop(s.heap, s.offset[r], s.size[r], jobs.priority)
            if s.to_start[j] > 0:
                add_event(s, now + jobs.delay[j], -1 - len(jobs.pool) - j)
        elif s.to_start[j] == 0:
            s.size[r] = pop(s.heap, s.offset[r], s.size[r], jobs.priority)
        slot, piece = _lowest(s.idle[r]), s.started[0]
        s.idle[r] &= ~(1 << slot)
        s.start[piece], s.end[piece] = now, now + jobs.seconds[j]
        s.job[piece], s.slot[piece], s.pool[piece] = j, slot, r
        add_event(s, s.end[piece], piece)
        s.started[0] = piece + 1


@compiled
@no_type_check
def _take_memory(jobs, s, j) -> None:
    """A job takes memory when it starts: a transfer its copy, a kernel all that it makes."""
    c = j - len(jobs.device)
    if c >= 0:
        s.live[jobs.copy_device[c]] += jobs.copy_bytes[c]
        return
    taken, c = jobs.scratch[j] + jobs.kept[j], jobs.made_head[j]
    while c != NOBODY:
        if jobs.copy_home[c] == c:
            taken += jobs.copy_bytes[c]
        c = jobs.made_next[c]
    s.live[jobs.device[j]] += taken


@compiled
@no_type_check
def _next_end(a, jobs, s, now):
    """Take the next event; return the job that has ended with it, or `NOBODY`."""
    piece = s.what[0]
    drop_event(s)
    if piece < -len(jobs.pool):
        _pass_on(a, jobs, s, -1 - len(jobs.pool) - piece)
        return NOBODY
    if piece < 0:
        return -1 - piece
    j, r = s.job[piece], s.pool[piece]
    s.idle[r] |= 1 << s.slot[piece]
    _look_at(s, r)
    s.running[j] -= 1
    if s.running[j] > 0:
        return NOBODY
    if j >= len(jobs.device) and jobs.delay[j] > 0:
        add_event(s, now + jobs.delay[j], -1 - j)
        return NOBODY
    return j


@compiled
@no_type_check
def _pass_on(a, jobs, s, j) -> None:
    """Transfer ``j`` has come to the next device of its route, and is ready for the next link."""
    c = j - len(jobs.device)
    s.at[c] = a.hop[s.at[c], jobs.copy_device[c]]
    r = jobs.channel_pool[a.channel[s.at[c], jobs.copy_device[c]]]
    s.size[r] = push(s.heap, s.offset[r], s.size[r], jobs.priority, j)
    _look_at(s, r)


@compiled
@no_type_check
def _release(jobs, s, j) -> None:
    """A job has ended; what it held is released."""
    c = j - len(jobs.device)
    if c >= 0:
        _drop_copy(jobs, s, jobs.copy_home[c])
        return
    s.live[jobs.device[j]] -= jobs.scratch[j]
    use = jobs.reads_head[j]
    while use != NOBODY:
        _drop_copy(jobs, s, jobs.use_copy[use])
        use = jobs.reads_next[use]


@compiled
@no_type_check
def _drop_copy(jobs, s, c) -> None:
    """One reader or transfer of a copy has ended; the last one gives the memory back."""
    jobs.copy_left[c] -= 1
    if jobs.copy_left[c] == 0:
        s.live[jobs.copy_device[c]] -= jobs.copy_bytes[c]


@compiled
@no_type_check
def _serve(jobs, s, j) -> None:
    """Whoever waited for a job's results becomes ready: after a transfer the readers of its copy,
    after a kernel the transfers of its results and the readers at home."""
    nodes = len(jobs.device)
    if j >= nodes:
        _serve_readers(jobs, s, j - nodes)
        return
    c = jobs.made_head[j]
    while c != NOBODY:
        if jobs.copy_home[c] == c:
            _serve_readers(jobs, s, c)
        else:
            jobs.waits[nodes + c] = 0
            _make_ready(jobs, s, nodes + c)
        c = jobs.made_next[c]


@compiled
@no_type_check
def _serve_readers(jobs, s, c) -> None:
    """Copy ``c`` is there."""
    use = jobs.readers_head[c]
    while use != NOBODY:
        kernel = jobs.use_kernel[use]
        jobs.waits[kernel] -= 1
        if jobs.waits[kernel] == 0:
            _make_ready(jobs, s, kernel)
        use = jobs.readers_next[use]


@compiled
@no_type_check
def _make_ready(jobs, s, j) -> None:
    _push_ready(jobs, s, j)
    _look_at(s, jobs.pool[j])


@compiled
@no_type_check
def _push_ready(jobs, s, j) -> None:
    r = jobs.pool[j]
    s.size[r] = push(s.heap, s.offset[r], s.size[r], jobs.priority, j)


@compiled
@no_type_check
def _look_at(s, r) -> None:
    """Pool ``r`` is to be looked at in this moment."""
    if not s.is_dirty[r]:
        s.dirty[s.marks[0]], s.is_dirty[r] = r, True
        s.marks[0] += 1


@compiled
@no_type_check
def _lowest(word):
    slot = 0
    while (word >> slot) & 1 == 0:
        slot += 1
    return slot


@compiled
@no_type_check
def _resident_weights(a, jobs, s) -> None:
    """Write [D] bytes of weights on each device, tied ones once."""
    s.weights[:], s.tied_on[:] = 0.0, False
    for n in range(len(jobs.device)):
        d = jobs.device[n]
        s.weights[d] += a.own_bytes[n]
        for i in range(a.tied_ptr[n], a.tied_ptr[n + 1]):
            t = a.tied_array[i]
            if not s.tied_on[t, d]:
                s.tied_on[t, d] = True
                s.weights[d] += a.tied_bytes[t]
