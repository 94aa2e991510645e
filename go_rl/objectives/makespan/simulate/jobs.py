"""Kernels and transfers of a plan, as the arrays that the replay runs.

A kernel is one node, or the nodes fused with it, named by the lowest (its leader). A *transfer*
carries a tensor to one other device, once, however many kernels read it there; it has the priority
of its most urgent reader. See `go_rl.objectives.makespan.simulate.replay`.
"""

from __future__ import annotations

from typing import NamedTuple, no_type_check

import numpy as np
from numba import njit

NOBODY = -1
"""End of a linked list; no copy, no kernel."""
LEAST_PRIORITY = -(2**63)
"""No priority is lower."""


class Jobs(NamedTuple):
    """Kernels and transfers of one plan. Job ``j < N`` is the kernel that node j leads, job
    ``N + c`` the transfer that makes copy ``c`` of a tensor."""

    priority: np.ndarray
    """[J]."""
    pool: np.ndarray
    """[J] engine pool or link."""
    pieces: np.ndarray
    """[J] parts that run on an engine each; 0: no job."""
    waits: np.ndarray
    """[J] copies (of a transfer: the producer) that are still missing."""
    seconds: np.ndarray
    """[J] engine time of each piece, with the gap."""
    copies: int
    """Number of copies C."""
    copy_device: np.ndarray
    """[C]."""
    copy_bytes: np.ndarray
    """[C]."""
    copy_left: np.ndarray
    """[C] readers and transfers that keep the copy alive; one more for a result of the model."""
    copy_home: np.ndarray
    """[C] the copy on the producer's device."""
    copy_kernel: np.ndarray
    """[C] producing kernel; -1: fed by the host."""
    made_head: np.ndarray
    made_next: np.ndarray
    """[N], [C] linked list of the copies of a kernel's results, on whatever device."""
    use_kernel: np.ndarray
    use_copy: np.ndarray
    """[U] one entry for each kernel that reads a copy."""
    readers_head: np.ndarray
    readers_next: np.ndarray
    """[C], [U] linked list of the uses of a copy."""
    reads_head: np.ndarray
    reads_next: np.ndarray
    """[N], [U] linked list of the uses by a kernel."""
    scratch: np.ndarray
    """[N] bytes of results nobody reads, from a kernel's start to its end."""
    kept: np.ndarray
    """[N] such bytes that are results of the model, from its start to the end."""


@njit(cache=True, nogil=True)
@no_type_check
def lay_out(a, device, priority, leader, seconds):
    """Return the `Jobs` of a plan: [N] devices, [N] priorities, [N] leaders, [N] kernel seconds.

    State beside the arrays of `Jobs`, over ``N`` nodes and ``D`` devices:

        kind      [N]  operator kind that chooses a kernel's engine pool: that of its heavy node
        gap       [N]  seconds between a kernel and the next on its engine
        stamp     [N]  last tensor that a kernel was counted as a reader of
        copy_at   [D]  copy of the present tensor on each device
        links          jobs of pool ``links + from * D + to`` are transfers
        copies, uses   made so far
    """
    nodes, devices, edges = len(device), len(a.capacity), len(a.user)
    tensors = len(a.tensor_bytes)
    most = edges + tensors
    jobs = nodes + most
    job_priority = np.full(jobs, LEAST_PRIORITY, np.int64)
    pool, waits = np.zeros(jobs, np.int64), np.zeros(jobs, np.int64)
    pieces, busy = np.zeros(jobs, np.int64), np.zeros(jobs)
    copy_device, copy_left = np.zeros(most, np.int64), np.zeros(most, np.int64)
    copy_bytes = np.zeros(most)
    copy_home, copy_kernel = np.zeros(most, np.int64), np.full(most, NOBODY, np.int64)
    made_head, made_next = np.full(nodes, NOBODY, np.int64), np.full(most, NOBODY, np.int64)
    use_kernel, use_copy = np.zeros(edges, np.int64), np.zeros(edges, np.int64)
    readers_head, readers_next = np.full(most, NOBODY, np.int64), np.full(edges, NOBODY, np.int64)
    reads_head, reads_next = np.full(nodes, NOBODY, np.int64), np.full(edges, NOBODY, np.int64)
    scratch, kept = np.zeros(nodes), np.zeros(nodes)
    # Priority, gap and kind of each kernel, from its nodes.
    kind, gap = np.full(nodes, NOBODY, np.int64), np.zeros(nodes)
    for n in range(nodes):
        if a.fed[n]:
            continue
        kernel = leader[n]
        job_priority[kernel] = max(job_priority[kernel], priority[n])
        gap[kernel] = max(gap[kernel], a.gap[n])
        if kind[kernel] == NOBODY or a.heavy[n]:
            kind[kernel] = a.op_kind[n]
    # Engine pool of each kernel, and the time on it.
    for n in range(nodes):
        if leader[n] == n and not a.fed[n]:
            pool[n] = a.pool[device[n], kind[n]]
            pieces[n] = a.engines[pool[n]] if a.split[pool[n]] else 1
            busy[n] = seconds[n] / pieces[n] + gap[n]
    # Copies of each tensor: at home, and one on every other device that reads it.
    stamp, copy_at = np.full(nodes, NOBODY, np.int64), np.full(devices, NOBODY, np.int64)
    copies, uses, links = 0, 0, len(a.engines)
    for n in range(nodes):
        kernel = leader[n]
        for t in range(a.tensor_of[n], a.tensor_of[n + 1]):
            first, home = copies, NOBODY
            if not a.fed[n]:
                home = copies
                copies += 1
                copy_device[home], copy_bytes[home] = device[n], a.tensor_bytes[t]
                copy_home[home], copy_kernel[home] = home, kernel
                copy_at[device[n]] = home
            # Each kernel that reads the tensor, once.
            for e in range(a.use_ptr[t], a.use_ptr[t + 1]):
                reader = leader[a.user[e]]
                if stamp[reader] == t or (reader == kernel and not a.fed[n]):
                    continue
                stamp[reader] = t
                where = device[reader]
                copy = copy_at[where]
                if copy == NOBODY:
                    copy = copies
                    copies += 1
                    copy_at[where] = copy
                    copy_device[copy], copy_bytes[copy] = where, a.tensor_bytes[t]
                    copy_home[copy] = copy if a.fed[n] else home
                    if not a.fed[n]:
                        copy_kernel[copy] = kernel
                        pieces[nodes + copy], waits[nodes + copy] = 1, 1
                        pool[nodes + copy] = links + device[n] * devices + where
                        busy[nodes + copy] = a.tensor_bytes[t] / a.bandwidth
                        copy_left[home] += 1
                        made_next[copy], made_head[kernel] = made_head[kernel], copy
                if not a.fed[n]:
                    waits[reader] += 1
                    if copy != home:
                        urgent = max(job_priority[nodes + copy], job_priority[reader])
                        job_priority[nodes + copy] = urgent
                copy_left[copy] += 1
                use_kernel[uses], use_copy[uses] = reader, copy
                readers_next[uses], readers_head[copy] = readers_head[copy], uses
                reads_next[uses], reads_head[reader] = reads_head[reader], uses
                uses += 1
            for copy in range(first, copies):
                copy_at[copy_device[copy]] = NOBODY
            # The copy at home: kept if it is a result of the model, nothing if it is fused away.
            if home != NOBODY:
                if a.is_output[n]:
                    copy_left[home] += 1
                if copy_left[home] == 0:
                    copy_bytes[home] = 0.0
                made_next[home], made_head[kernel] = made_head[kernel], home
        # Results that nobody reads.
        if not a.fed[n]:
            if a.is_output[n]:
                kept[kernel] += a.extra_bytes[n]
            else:
                scratch[kernel] += a.extra_bytes[n]
    return Jobs(job_priority[:nodes + copies], pool[:nodes + copies], pieces[:nodes + copies],
                waits[:nodes + copies], busy[:nodes + copies], copies, copy_device, copy_bytes,
                copy_left, copy_home, copy_kernel, made_head, made_next, use_kernel, use_copy,
                readers_head, readers_next, reads_head, reads_next, scratch, kept)  # fmt: skip
