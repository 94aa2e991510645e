"""HEFT: heterogeneous earliest finish time, the standard list scheduler.

Topcuoglu, Hariri, Wu, "Performance-effective and low-complexity task scheduling for heterogeneous
computing", IEEE TPDS 2002. Nodes by falling upward rank (mean seconds, mean communication), each on
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
from jaxtyping import Bool, Float64, Int, Int16, Int64

from go_rl.core import Problem
from go_rl.core.compiled_struct import CompiledStruct, compiled
from go_rl.core.decisions import Decisions
from go_rl.objectives.makespan.bound import longest_tails
from go_rl.objectives.makespan.choices import NOWHERE
from go_rl.objectives.makespan.infer_devices import beside_readers
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
    """[N] seconds from the start of a node to the end of the iteration; equation 8 of the paper."""
    device: Int16[np.ndarray, "N"]
    """[N] device of each node."""
    finish: Float64[np.ndarray, "N"]
    """[N] seconds at which each node ends."""


@dataclass(frozen=True, eq=False)
class HeftArrays(CompiledStruct):
    """Arrays of a problem that HEFT reads: ``N`` nodes, ``D`` devices, ``E`` edges."""

    order: Int64[np.ndarray, "N"]
    """[N] nodes by falling rank."""
    pred_ptr: Int64[np.ndarray, "rows"]
    """[N + 1] first of each node's edges in ``pred``."""
    pred: Int64[np.ndarray, "E"]
    """[E] edges by receiver."""
    senders: Int64[np.ndarray, "E"]
    """[E] sender of each edge."""
    tensor: Int64[np.ndarray, "E"]
    """[E] tensor on each edge."""
    size: Float64[np.ndarray, "E"]
    """[E] bytes of the tensor."""
    bandwidth: Float64[np.ndarray, "D D"]
    """[D, D] bytes/s of the link from the first to the second."""
    latency: Float64[np.ndarray, "D D"]
    """[D, D] seconds until a tensor that has left its link is there."""
    channel: Int64[np.ndarray, "D D"]
    """[D, D] number of what carries one tensor at a time, in `LinkTable`."""
    seconds: Float64[np.ndarray, "D N"]
    """[D, N] seconds of each node on its engine, the gap after it included."""
    usable: Bool[np.ndarray, "D N"]
    """[D, N] whether a node may go there."""
    fed: Bool[np.ndarray, "N"]
    """[N] inputs and constants, which are everywhere."""
    leader: Int64[np.ndarray, "N"]
    """[N] node that decides for each node's colocation class."""
    pool: Int64[np.ndarray, "D N"]
    """[D, N] engine pool of each node."""
    engine_of: Int64[np.ndarray, "pools"]
    """[R + 1] first engine of each pool."""
    queues: bool
    """Whether each link carries one tensor at a time."""


@dataclass(frozen=True, eq=False)
class Schedule(CompiledStruct):
    """Schedule that HEFT has committed so far: ``T`` tensors."""

    device: Int16[np.ndarray, "N"]
    """[N] device of each node."""
    finish: Float64[np.ndarray, "N"]
    """[N] seconds at which it ends."""
    home: Int64[np.ndarray, "N"]
    """[N] device of each leader's class, or `NOWHERE`."""
    arrival: Float64[np.ndarray, "T D"]
    """[T, D] seconds at which a tensor is on a further device; inf: it is not sent."""
    link: Float64[np.ndarray, "2 C"]
    """[2, C] when each channel is free; the second row is that of one trial."""


@dataclass(frozen=True, eq=False)
class IdleTimes(CompiledStruct):
    """Idle times of ``R`` engines, for each a list linked from the latest, endless one backwards;
    every node makes one more at most."""

    start: Float64[np.ndarray, "I"]
    """[R + N] seconds at which it begins."""
    end: Float64[np.ndarray, "I"]
    """[R + N] seconds at which it ends."""
    before: Int64[np.ndarray, "I"]
    """[R + N] the one before it on its engine, or `NOWHERE`."""
    latest: Int64[np.ndarray, "R"]
    """[R] the last one of each engine."""
    count: Int64[np.ndarray, "1"]
    """[1] idle times made so far."""


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
    arrays = HeftArrays(
        np.lexsort((np.arange(len(rank)), -rank)), start.astype(np.int64),
        incoming.astype(np.int64), graph.senders.astype(np.int64), tensor,
        size[tensor], a.bandwidth, a.latency, a.channel, lasting, usable, options.fed.copy(),
        options.leader,
        a.pool[:, a.op_kind].copy(), engines.astype(np.int64), queues,
    )  # fmt: skip
    schedule = _new_schedule(arrays, a.channels)
    _earliest_finish(arrays, schedule, _all_idle(int(engines[-1]), graph.num_nodes))
    return HeftSchedule(rank, schedule.device, schedule.finish)


def upward_rank(
    workspace: MakespanWorkspace, device: Int[np.ndarray, "N"] | None = None
) -> Float64[np.ndarray, "N"]:
    """Return [N] seconds from the start of a node to the end of the iteration, with communication:
    means over the devices that a node may have, and over links.

    ``device`` [N]: the only one that each node may have, so that tensors between nodes on one
    device cost nothing.
    """
    options, problem, graph = workspace.choices, workspace.problem, workspace.problem.graph
    lasting = _lasting(workspace)
    usable = options.allowed & np.isfinite(lasting)
    if device is not None:
        usable &= np.arange(workspace.num_devices)[:, None] == device
    total = np.where(usable, lasting, 0.0).sum(axis=0)
    tensor, size = _tensors(problem)
    mean = problem.hardware.link_table
    sent = size[tensor] / mean.mean_bandwidth + mean.mean_latency
    moved = np.where(options.fed[graph.senders], 0.0, sent)
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


def _new_schedule(a: HeftArrays, channels: int) -> Schedule:
    devices, nodes = a.seconds.shape
    tensors = int(a.tensor.max(initial=0)) + 1
    return Schedule(
        np.zeros(nodes, np.int16), np.zeros(nodes), np.full(nodes, NOWHERE, np.int64),
        np.full((tensors, devices), np.inf), np.zeros((2, channels)),
    )  # fmt: skip


def _all_idle(engines: int, nodes: int) -> IdleTimes:
    """Return idle time r of engine r, which lasts for ever."""
    return IdleTimes(
        np.zeros(engines + nodes), np.full(engines + nodes, np.inf),
        np.full(engines + nodes, NOWHERE, np.int64), np.arange(engines), np.full(1, engines),
    )  # fmt: skip


@compiled
@no_type_check
def _earliest_finish(a, s, idle) -> None:
    """Give the nodes of `HeftArrays`, in their order, devices and ends in `Schedule`."""
    for n in a.order:
        if a.fed[n]:
            continue
        device, engine, gap, later, begin, end = _best_place(a, s, idle, n)
        if device < 0:
            continue
        # Commit the device and engine with the earliest finish.
        _ready(a, s, n, device, np.int64(0), np.bool_(True))
        s.device[n], s.finish[n], s.home[a.leader[n]] = device, end, device
        if end > begin:
            _cut(idle, engine, gap, later, begin, end)


@compiled
@no_type_check
def _best_place(a, s, idle, n):
    """Device (`NOWHERE`: none), engine, idle time, the one after it, begin and end of the earliest
    finish of node ``n``."""
    best, best_engine, best_gap, best_later = np.int64(NOWHERE), NOWHERE, NOWHERE, NOWHERE
    best_begin, best_end, held = 0.0, np.inf, s.home[a.leader[n]]
    for d in range(a.seconds.shape[0]):
        if not a.usable[d, n] or (held >= 0 and held != d):
            continue
        for i in range(a.pred_ptr[n], a.pred_ptr[n + 1]):
            through = a.channel[np.int64(s.device[a.senders[a.pred[i]]]), d]
            s.link[1, through] = s.link[0, through]
        ready = _ready(a, s, n, d, np.int64(1), np.bool_(False))
        seconds = a.seconds[d, n]
        for r in range(a.engine_of[a.pool[d, n]], a.engine_of[a.pool[d, n] + 1]):
            gap, later = _first_gap(idle, r, ready, seconds)
            begin = max(idle.start[gap], ready)
            if begin + seconds < best_end:
                best, best_engine, best_gap, best_later = d, r, gap, later
                best_begin, best_end = begin, begin + seconds
    return best, best_engine, best_gap, best_later, best_begin, best_end


@compiled
@no_type_check
def _first_gap(idle, r, ready, seconds):
    """Insertion: the earliest idle time of engine ``r`` with max(start, ready) + seconds <= end,
    and the one after it."""
    found, later, found_later = NOWHERE, NOWHERE, NOWHERE
    gap = idle.latest[r]
    while gap >= 0 and idle.end[gap] >= ready:
        if max(idle.start[gap], ready) + seconds <= idle.end[gap]:
            found, found_later = gap, later
        gap, later = idle.before[gap], gap
    return found, found_later


@compiled
@no_type_check
def _cut(idle, engine, gap, later, begin, end):
    """Cut a node out of an idle time: a rest before it, a rest behind it, or neither."""
    if begin > idle.start[gap]:
        rest = idle.count[0]
        idle.start[rest], idle.end[rest] = idle.start[gap], begin
        idle.before[rest], idle.before[gap] = idle.before[gap], rest
        idle.count[0] += 1
    idle.start[gap] = end
    if end >= idle.end[gap]:
        if later >= 0:
            idle.before[later] = idle.before[gap]
        else:
            idle.latest[engine] = idle.before[gap]


@compiled
@no_type_check
def _ready(a, s, n, d, row, keep):
    """Time at which the operands of ``n`` are on ``d``. ``row``: of `Schedule.link`, brought up to
    date; ``keep``: the transfers take place."""
    ready = 0.0
    for i in range(a.pred_ptr[n], a.pred_ptr[n + 1]):
        e = a.pred[i]
        u = a.senders[e]
        if a.fed[u]:
            continue
        there = s.finish[u]
        if s.device[u] != d:
            there = s.arrival[a.tensor[e], d]
            if there == np.inf:
                source, begin = np.int64(s.device[u]), s.finish[u]
                sent = a.size[e] / a.bandwidth[source, d]
                if a.queues:
                    begin = max(begin, s.link[row, a.channel[source, d]])
                    s.link[row, a.channel[source, d]] = begin + sent
                there = begin + sent + a.latency[source, d]
                if keep:
                    s.arrival[a.tensor[e], d] = there
        ready = max(ready, there)
    return ready
