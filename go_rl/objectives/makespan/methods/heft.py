"""HEFT: heterogeneous earliest finish time, the standard list scheduler.

Topcuoglu, Hariri, Wu, "Performance-effective and low-complexity task scheduling for heterogeneous
computing", IEEE TPDS 2002. Tasks by falling upward rank (mean seconds, mean communication), each on
the device where it finishes first, in the first idle time that is long enough (insertion). As
published it lets a link carry any number of tensors at once. A second schedule queues them, one
after the other on each link, as Sinnen and Sousa do ("Communication contention in task scheduling",
IEEE TPDS 2005). Neither knows memory. An engine is one of HEFT's processors; a pool that cuts
operators into parts counts as one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import no_type_check

import numpy as np
from jaxtyping import Float64, Int, Int16, Int64
from numba import njit

from go_rl.core import Problem
from go_rl.core.decisions import Decisions
from go_rl.objectives.makespan.choices import NOWHERE
from go_rl.objectives.makespan.infer_devices import beside_readers
from go_rl.objectives.makespan.longest_path import longest_tails
from go_rl.objectives.makespan.methods.best_of import BestOf
from go_rl.objectives.makespan.workspace import MakespanWorkspace
from go_rl.runtime.decoder_calls import count_decoder_calls


def _plans(workspace: MakespanWorkspace, seed: int) -> Iterator[Decisions]:
    for queues in (False, True):
        schedule = heft(workspace, queues)
        device = beside_readers(workspace.problem.graph, schedule.device)
        yield workspace.decisions(device[None], rank_priorities(schedule.rank)[None])


Heft = partial(BestOf, "heft", _plans)
"""`Optimizer`: HEFT's devices, and its ranks as scheduling priorities; nothing is fused. The first
sample is HEFT as published, the second HEFT with queues on links."""


@dataclass(frozen=True, eq=False)
class HeftSchedule:
    """Schedule as HEFT plans it, in its own model of time."""

    rank: Float64[np.ndarray, "N"]
    """[N] seconds from the start of a node to the end of the step; equation 8 of the paper."""
    device: Int16[np.ndarray, "N"]
    """[N]."""
    finish: Float64[np.ndarray, "N"]
    """[N] seconds."""


def heft(workspace: MakespanWorkspace, queues: bool = False) -> HeftSchedule:
    """Return HEFT's schedule; nodes that nothing may run are left on the first device.

    Args:
        workspace: the problem.
        queues: whether each link carries one tensor at a time.
    """
    count_decoder_calls()
    options, a = workspace.choices, workspace.pricer.arrays
    problem, graph = workspace.problem, workspace.problem.graph
    lasting = _lasting(workspace)
    usable = options.allowed & np.isfinite(lasting)
    rank, (tensor, size) = upward_rank(workspace), _tensors(problem)
    engines = np.concatenate([[0], np.cumsum(np.where(a.split, 1, a.engines))])
    start, incoming = graph.predecessors
    device, finish = _earliest_finish(
        np.lexsort((np.arange(len(rank)), -rank)), start.astype(np.int64),
        incoming.astype(np.int64), graph.senders.astype(np.int64), tensor,
        size[tensor] / a.bandwidth, a.latency, lasting, usable, options.fed.copy(), options.leader,
        a.pool[:, a.op_kind].copy(), engines.astype(np.int64), queues,
    )  # fmt: skip
    return HeftSchedule(rank, device, finish)


def upward_rank(
    workspace: MakespanWorkspace, device: Int[np.ndarray, "N"] | None = None
) -> Float64[np.ndarray, "N"]:
    """Return [N] seconds from the start of a node to the end of the step, communication included;
    means over the devices that a node may have, and over links.

    ``device`` [N]: the only one that each node may have, so that tensors between nodes on one
    device cost nothing.
    """
    options, a = workspace.choices, workspace.pricer.arrays
    problem, graph = workspace.problem, workspace.problem.graph
    lasting = _lasting(workspace)
    usable = options.allowed & np.isfinite(lasting)
    if device is not None:
        usable &= np.arange(workspace.num_devices)[:, None] == device
    total = np.where(usable, lasting, 0.0).sum(axis=0)
    tensor, size = _tensors(problem)
    moved = np.where(options.fed[graph.senders], 0.0, size[tensor] / a.bandwidth + a.latency)
    only = np.where(usable.sum(axis=0) == 1, usable.argmax(axis=0), NOWHERE)
    home = only[graph.senders]
    together = (home != NOWHERE) & (home == only[graph.receivers])
    return longest_tails(
        graph.num_nodes, graph.senders.astype(np.int64), graph.receivers.astype(np.int64),
        total / np.maximum(usable.sum(axis=0), 1), np.where(together, 0.0, moved),
    )  # fmt: skip


def _tensors(problem: Problem) -> tuple[Int64[np.ndarray, "E"], Float64[np.ndarray, "T"]]:
    """[E] number of the tensor on each edge, and [T] bytes of it."""
    graph = problem.graph
    results = int(graph.edge_output.max(initial=0)) + 1
    key = graph.senders.astype(np.int64) * results + graph.edge_output
    found, tensor = np.unique(key, return_inverse=True)
    size = np.zeros(len(found))
    np.maximum.at(size, tensor, problem.edge_bytes)
    return tensor.astype(np.int64), size


def rank_priorities(rank: Float64[np.ndarray, "N"]) -> Int64[np.ndarray, "N"]:
    """Return [N] whole numbers in the order of the ranks."""
    return np.unique(rank, return_inverse=True)[1].astype(np.int64)


def _lasting(workspace: MakespanWorkspace) -> Float64[np.ndarray, "D N"]:
    """[D, N] seconds that each node keeps its engine, the gap after it included."""
    a, problem = workspace.pricer.arrays, workspace.problem
    pool = a.pool[:, a.op_kind]
    pieces = np.where(a.split, a.engines, 1)[pool]
    seconds = problem.seconds[problem.device_kind] / pieces + a.gap
    return np.where(a.fed, 0.0, seconds)


@njit(cache=True, nogil=True)
@no_type_check
def _earliest_finish(
    order, pred_ptr, pred, senders, tensor, busy, latency, seconds, usable, fed, leader, pool,
    engine_of, queues,
):  # fmt: skip
    """Return [N] devices and [N] ends. The idle times of each engine form a list linked from the
    latest, endless one backwards.

    State, over ``N`` nodes, ``D`` devices and ``E`` engines:

    - ``start``, ``end`` [E + N]: bounds of each idle time, seconds;
    - ``before`` [E + N]: the idle time before it on its engine, or `NOWHERE`;
    - ``latest`` [E]: the endless idle time of each engine, head of its list;
    - ``home`` [N]: device of each leader's class, or `NOWHERE`;
    - ``link`` [D, D], ``trial`` [D]: when links are free, committed and for one trial.
    """
    devices, nodes = seconds.shape
    engines = engine_of[-1]
    start, end = np.zeros(engines + nodes), np.full(engines + nodes, np.inf)
    before, latest = np.full(engines + nodes, NOWHERE), np.arange(engines)
    idles = engines
    device, finish = np.zeros(nodes, np.int16), np.zeros(nodes)
    home = np.full(nodes, NOWHERE)
    arrival = np.full((int(tensor.max()) + 1 if len(tensor) else 1, devices), np.inf)
    link, trial = np.zeros((devices, devices)), np.zeros(devices)
    for n in order:
        if fed[n]:
            continue
        best = np.int64(NOWHERE)
        best_engine, best_idle, best_later = NOWHERE, NOWHERE, NOWHERE
        best_end, best_start = np.inf, 0.0
        for d in range(devices):
            if not usable[d, n] or (home[leader[n]] >= 0 and home[leader[n]] != d):
                continue
            trial[:] = link[d]
            ready = _ready(
                n, d, pred_ptr, pred, senders, tensor, busy, latency, fed, device, finish, arrival,
                trial, queues, np.bool_(False),
            )  # fmt: skip
            # Insertion: the earliest idle time with max(start, ready) + seconds <= end.
            for r in range(engine_of[pool[d, n]], engine_of[pool[d, n] + 1]):
                found, later, found_later = NOWHERE, NOWHERE, NOWHERE
                idle = latest[r]
                while idle >= 0 and end[idle] >= ready:
                    if max(start[idle], ready) + seconds[d, n] <= end[idle]:
                        found, found_later = idle, later
                    idle, later = before[idle], idle
                begin = max(start[found], ready)
                if begin + seconds[d, n] < best_end:
                    best, best_engine, best_idle, best_later = d, r, found, found_later
                    best_start, best_end = begin, begin + seconds[d, n]
        if best < 0:
            continue
        _ready(
            n, best, pred_ptr, pred, senders, tensor, busy, latency, fed, device, finish, arrival,
            link[best], queues, np.bool_(True),
        )  # fmt: skip
        # Commit the device and engine with the earliest finish.
        device[n], finish[n], home[leader[n]] = best, best_end, best
        if best_end == best_start:
            continue
        # Cut the node out of the idle time: a rest before it, a rest behind it, or neither.
        idle = best_idle
        if best_start > start[idle]:  # what is left of it before the task
            start[idles], end[idles], before[idles] = start[idle], best_start, before[idle]
            before[idle] = idles
            idles += 1
        start[idle] = best_end
        if start[idle] >= end[idle]:
            if best_later >= 0:
                before[best_later] = before[idle]
            else:
                latest[best_engine] = before[idle]
    return device, finish


@njit(cache=True, nogil=True)
@no_type_check
def _ready(
    n, d, pred_ptr, pred, senders, tensor, busy, latency, fed, device, finish, arrival, link,
    queues, keep,
):  # fmt: skip
    """Time at which the operands of ``n`` are on ``d``. ``link`` [D]: when the link from each
    device is free, brought up to date; ``keep``: the transfers take place."""
    ready = 0.0
    for i in range(pred_ptr[n], pred_ptr[n + 1]):
        e = pred[i]
        u = senders[e]
        if fed[u]:
            continue
        there = finish[u]
        if device[u] != d:
            there = arrival[tensor[e], d]
            if there == np.inf:
                begin = finish[u]
                if queues:
                    begin = max(begin, link[device[u]])
                    link[device[u]] = begin + busy[e]
                there = begin + busy[e] + latency
                if keep:
                    arrival[tensor[e], d] = there
        ready = max(ready, there)
    return ready
