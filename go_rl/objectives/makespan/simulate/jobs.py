"""Kernels and transfers of a plan, as the arrays that the replay runs.

A kernel is one node, or the nodes fused with it, named by the lowest (its leader). A *transfer*
carries a tensor to one other device, once, however many kernels read it there; it has the priority
of its most urgent reader. On a mesh it has a piece for each link of its route. See
`go_rl.objectives.makespan.simulate.replay`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import no_type_check

import numpy as np
from jaxtyping import Float64, Int64

from go_rl.core.compiled_struct import CompiledStruct, compiled
from go_rl.objectives.makespan.simulate.replay_arrays import ReplayArrays

NOBODY = -1
"""End of a linked list; no copy, no kernel."""
LEAST_PRIORITY = -(2**63)
"""No priority is lower."""


@dataclass(frozen=True, eq=False)
class Jobs(CompiledStruct):
    """Kernels and transfers of one plan. Job ``j < N`` is the kernel that node j leads, job
    ``N + c`` the transfer that makes copy ``c`` of a tensor. There is room for any plan of a
    problem with ``N`` nodes, ``E`` edges, ``T`` tensors, ``D`` devices, ``C`` channels: ``M = E +
    T`` copies, ``J = N + M`` jobs, ``E`` uses; what lies behind the last copy and the last use
    means nothing."""

    device: Int64[np.ndarray, "N"]
    """[N] device of each node."""
    leader: Int64[np.ndarray, "N"]
    """[N] kernel of each node."""
    priority: Int64[np.ndarray, "J"]
    """[J] priority of each job, larger first."""
    pool: Int64[np.ndarray, "J"]
    """[J] engine pool; of a transfer, that of its first channel, which comes after all engines."""
    pieces: Int64[np.ndarray, "J"]
    """[J] parts that run on an engine each, of a transfer the links of its route; 0: no job."""
    waits: Int64[np.ndarray, "J"]
    """[J] copies (of a transfer: the producer) that are still missing."""
    seconds: Float64[np.ndarray, "J"]
    """[J] engine time of each piece, with the gap."""
    delay: Float64[np.ndarray, "J"]
    """[J] seconds from the end of a transfer on its last link until its copy is there, which are
    those from its start on any link until the next one may carry it."""
    copies: Int64[np.ndarray, "1"]
    """[1] number of copies."""
    copy_device: Int64[np.ndarray, "M"]
    """[M] device that a copy lies on."""
    copy_bytes: Float64[np.ndarray, "M"]
    """[M] bytes of each copy."""
    copy_left: Int64[np.ndarray, "M"]
    """[M] readers and transfers that keep the copy alive; one more for a result of the model."""
    copy_home: Int64[np.ndarray, "M"]
    """[M] the copy on the producer's device."""
    copy_kernel: Int64[np.ndarray, "M"]
    """[M] producing kernel; -1: fed by the host."""
    made_head: Int64[np.ndarray, "N"]
    """[N] first copy of a kernel's results, on whatever device."""
    made_next: Int64[np.ndarray, "M"]
    """[M] next copy of the same kernel's results."""
    uses: Int64[np.ndarray, "1"]
    """[1] number of uses: one for each kernel that reads a copy."""
    use_kernel: Int64[np.ndarray, "E"]
    """[E] reading kernel."""
    use_copy: Int64[np.ndarray, "E"]
    """[E] copy that it reads."""
    readers_head: Int64[np.ndarray, "M"]
    """[M] first use of a copy."""
    readers_next: Int64[np.ndarray, "E"]
    """[E] next use of the same copy."""
    reads_head: Int64[np.ndarray, "N"]
    """[N] first use by a kernel."""
    reads_next: Int64[np.ndarray, "E"]
    """[E] next use by the same kernel."""
    scratch: Float64[np.ndarray, "N"]
    """[N] bytes of results nobody reads, from a kernel's start to its end."""
    kept: Float64[np.ndarray, "N"]
    """[N] such bytes that are results of the model, from its start to the end."""
    kind: Int64[np.ndarray, "N"]
    """[N] operator kind that chooses a kernel's engine pool: that of its heavy node."""
    gap: Float64[np.ndarray, "N"]
    """[N] seconds between a kernel and the next on its engine."""
    stamp: Int64[np.ndarray, "N"]
    """[N] last tensor that a kernel was counted as a reader of."""
    copy_at: Int64[np.ndarray, "D"]
    """[D] copy of the present tensor on each device."""
    channel_pool: Int64[np.ndarray, "C"]
    """[C] pool of each channel that a transfer passes, or `NOBODY`."""
    channels: Int64[np.ndarray, "1"]
    """[1] channels that have one, whose pools follow those of the engines."""
    passed: Int64[np.ndarray, "C"]
    """[C] channel of each of these pools."""
    passing: Int64[np.ndarray, "C"]
    """[C] transfers that pass each of them."""


def new_jobs(a: ReplayArrays) -> Jobs:
    """Return room for the jobs of any plan."""
    nodes, devices, edges = len(a.op_kind), len(a.capacity), len(a.user)
    most = edges + len(a.tensor_bytes)
    sizes = {"N": nodes, "D": devices, "E": edges, "M": most, "J": nodes + most, "C": a.channels}
    return Jobs.zeros(sizes, channel_pool=np.full(a.channels, NOBODY))


def laid_out(
    a: ReplayArrays,
    device: Int64[np.ndarray, "N"],
    priority: Int64[np.ndarray, "N"],
    leader: Int64[np.ndarray, "N"],
    seconds: Float64[np.ndarray, "N"],
) -> Jobs:
    """Return the jobs of a plan: [N] devices, priorities, leaders, seconds of kernels."""
    jobs = new_jobs(a)
    lay_out(a, device, priority, leader, seconds, jobs)
    return jobs


@compiled
@no_type_check
def lay_out(a, device, priority, leader, seconds, jobs) -> None:
    """Write the `Jobs` of a plan: [N] devices, [N] priorities, [N] leaders, [N] kernel seconds."""
    _clear(jobs)
    for n in range(len(device)):
        jobs.device[n], jobs.leader[n] = device[n], leader[n]
    _lay_out_kernels(a, jobs, priority, seconds)
    for n in range(len(a.fed)):
        for t in range(a.tensor_of[n], a.tensor_of[n + 1]):
            _lay_out_tensor(a, jobs, n, t)
        # Results that nobody reads.
        if not a.fed[n]:
            if a.is_output[n]:
                jobs.kept[jobs.leader[n]] += a.extra_bytes[n]
            else:
                jobs.scratch[jobs.leader[n]] += a.extra_bytes[n]


@compiled
@no_type_check
def _clear(jobs) -> None:
    """Forget the plan before; transfers are written when they are made."""
    for n in range(len(jobs.device)):
        jobs.priority[n], jobs.pool[n], jobs.pieces[n] = LEAST_PRIORITY, 0, 0
        jobs.waits[n], jobs.seconds[n] = 0, 0.0
    jobs.made_head[:], jobs.reads_head[:] = NOBODY, NOBODY
    jobs.scratch[:], jobs.kept[:], jobs.gap[:] = 0.0, 0.0, 0.0
    jobs.kind[:], jobs.stamp[:], jobs.copy_at[:] = NOBODY, NOBODY, NOBODY
    for i in range(jobs.channels[0]):
        jobs.channel_pool[jobs.passed[i]] = NOBODY
    jobs.copies[0], jobs.uses[0], jobs.channels[0] = 0, 0, 0


@compiled
@no_type_check
def _lay_out_kernels(a, jobs, priority, seconds) -> None:
    """Priority, gap and kind of each kernel, from its nodes; its engine pool, and the time on it:
    seconds / pieces + gap."""
    for n in range(len(a.fed)):
        if a.fed[n]:
            continue
        k = jobs.leader[n]
        jobs.priority[k] = max(jobs.priority[k], priority[n])
        jobs.gap[k] = max(jobs.gap[k], a.gap[n])
        if jobs.kind[k] == NOBODY or a.heavy[n]:
            jobs.kind[k] = a.op_kind[n]
    for n in range(len(a.fed)):
        if jobs.leader[n] == n and not a.fed[n]:
            pool = a.pool[jobs.device[n], jobs.kind[n]]
            pieces = a.engines[pool] if a.split[pool] else 1
            jobs.pool[n], jobs.pieces[n] = pool, pieces
            jobs.seconds[n] = seconds[n] / pieces + jobs.gap[n]


@compiled
@no_type_check
def _lay_out_tensor(a, jobs, n, t) -> None:
    """Make the copies of tensor ``t`` of node ``n``: at home, and on every device that reads it."""
    first, home, kernel = jobs.copies[0], np.int64(NOBODY), jobs.leader[n]
    if not a.fed[n]:
        home = _new_copy(a, jobs, t, jobs.device[n], kernel)
    # Each kernel that reads the tensor, once.
    for e in range(a.use_ptr[t], a.use_ptr[t + 1]):
        reader = jobs.leader[a.user[e]]
        if jobs.stamp[reader] == t or (reader == kernel and not a.fed[n]):
            continue
        jobs.stamp[reader] = t
        _use(a, jobs, n, t, home, reader)
    for copy in range(first, jobs.copies[0]):
        jobs.copy_at[jobs.copy_device[copy]] = NOBODY
    # The copy at home: kept if it is a result of the model, nothing if it is fused away.
    if home != NOBODY:
        if a.is_output[n]:
            jobs.copy_left[home] += 1
        if jobs.copy_left[home] == 0:
            jobs.copy_bytes[home] = 0.0
        jobs.made_next[home], jobs.made_head[kernel] = jobs.made_head[kernel], home


@compiled
@no_type_check
def _use(a, jobs, n, t, home, reader) -> None:
    """Kernel ``reader`` reads tensor ``t`` of node ``n``, from the copy on its device."""
    copy = jobs.copy_at[jobs.device[reader]]
    if copy == NOBODY and a.fed[n]:
        copy = _new_copy(a, jobs, t, jobs.device[reader], np.int64(NOBODY))
    elif copy == NOBODY:
        copy = _send(a, jobs, t, home, jobs.device[reader])
    if not a.fed[n]:
        jobs.waits[reader] += 1
        if copy != home:
            sent = len(jobs.device) + copy
            jobs.priority[sent] = max(jobs.priority[sent], jobs.priority[reader])
    jobs.copy_left[copy] += 1
    use = jobs.uses[0]
    jobs.use_kernel[use], jobs.use_copy[use] = reader, copy
    jobs.readers_next[use], jobs.readers_head[copy] = jobs.readers_head[copy], use
    jobs.reads_next[use], jobs.reads_head[reader] = jobs.reads_head[reader], use
    jobs.uses[0] = use + 1


@compiled
@no_type_check
def _send(a, jobs, t, home, where):
    """Return a new copy of tensor ``t`` that a transfer brings to device ``where``."""
    kernel, source = jobs.copy_kernel[home], jobs.copy_device[home]
    copy = _new_copy(a, jobs, t, where, kernel)
    jobs.copy_home[copy] = home
    sent = len(jobs.device) + copy
    jobs.waits[sent] = 1
    jobs.pool[sent] = _pool(a, jobs, a.channel[source, where])
    jobs.pieces[sent] = 1
    jobs.seconds[sent] = a.tensor_bytes[t] / a.bandwidth[source, where]
    at = a.hop[source, where]
    jobs.delay[sent] = a.latency[source, at]
    while at != where:
        _pool(a, jobs, a.channel[at, where])
        jobs.pieces[sent] += 1
        at = a.hop[at, where]
    jobs.copy_left[home] += 1
    jobs.made_next[copy], jobs.made_head[kernel] = jobs.made_head[kernel], copy
    return copy


@compiled
@no_type_check
def _pool(a, jobs, channel):
    """Return the pool of a channel that one more transfer passes."""
    pool = jobs.channel_pool[channel]
    if pool == NOBODY:
        pool = len(a.engines) + jobs.channels[0]
        jobs.channel_pool[channel], jobs.passed[jobs.channels[0]] = pool, channel
        jobs.passing[jobs.channels[0]] = 0
        jobs.channels[0] += 1
    jobs.passing[pool - len(a.engines)] += 1
    return pool


@compiled
@no_type_check
def _new_copy(a, jobs, t, where, kernel):
    """Return a new copy of tensor ``t`` on device ``where``, which nobody reads yet; it is at home
    and no transfer brings it."""
    copy = jobs.copies[0]
    jobs.copies[0] = copy + 1
    jobs.copy_at[where] = copy
    jobs.copy_device[copy], jobs.copy_bytes[copy] = where, a.tensor_bytes[t]
    jobs.copy_left[copy], jobs.copy_home[copy], jobs.copy_kernel[copy] = 0, copy, kernel
    jobs.readers_head[copy], jobs.made_next[copy] = NOBODY, NOBODY
    sent = len(jobs.device) + copy
    jobs.priority[sent], jobs.pool[sent], jobs.pieces[sent] = LEAST_PRIORITY, 0, 0
    jobs.waits[sent], jobs.seconds[sent], jobs.delay[sent] = 0, 0.0, 0.0
    return copy
