"""Contents of a device's memory at its peak, for messages about too little memory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from jaxtyping import Int64

from go_rl.core import OpGraph
from go_rl.objectives.makespan.simulate.jobs import NOBODY, Jobs
from go_rl.objectives.makespan.simulate.replay_arrays import ReplayArrays
from go_rl.objectives.makespan.simulate.replay_state import Trace
from go_rl.objectives.makespan.simulate.timeline_memory import memory_spans, read_copies, use_of


def held_at_peak(
    graph: OpGraph,
    a: ReplayArrays,
    plan: tuple[Int64[np.ndarray, "N"], Int64[np.ndarray, "N"]],
    replayed: tuple[Jobs, Trace],
    where: int,
) -> Iterator[tuple[str, float]]:
    """Yield what takes memory on device ``where`` at its peak, with bytes: ``result of 'b'``,
    ``weights of 'a'``; each of a node's results, and tied weights once.

    Args:
        graph: for names.
        a: the problem.
        plan: [N] devices and [N] leaders.
        replayed: the plan's jobs as laid out, before they ran, and a trace of it.
        where: device.
    """
    device, leader = plan
    jobs, trace = replayed
    copies = read_copies(a, jobs)
    spans = memory_spans(a, device, jobs, copies, trace)
    use = use_of(spans, where, float(trace.weights[where]))
    moment = use.seconds[int(np.argmax(use.bytes))]
    node = spans.node.copy()
    node[np.flatnonzero(copies.node == NOBODY)] = _fed_nodes(a, device, leader)
    there = (spans.device == where) & (spans.begins <= moment) & (spans.ends > moment)
    for i in np.flatnonzero(there).tolist():
        yield f"result of {graph.names[node[i]]!r}", float(spans.bytes[i])
    yield from _weights(graph, a, device == where)


def _fed_nodes(
    a: ReplayArrays, device: Int64[np.ndarray, "N"], leader: Int64[np.ndarray, "N"]
) -> Int64[np.ndarray, "F"]:
    """[F] node of each copy that the host feeds, in the order in which a layout numbers them: one
    for each tensor and device that reads it."""
    tensor = np.repeat(np.arange(len(a.tensor_bytes)), np.diff(a.use_ptr))
    producer = np.repeat(np.arange(len(a.fed)), np.diff(a.tensor_of))
    fed = a.fed[producer[tensor]]
    readers = device[leader[a.user[fed]]]
    pairs = np.unique(tensor[fed] * len(a.capacity) + readers)
    return producer[pairs // len(a.capacity)]


def _weights(graph: OpGraph, a: ReplayArrays, here: np.ndarray) -> Iterator[tuple[str, float]]:
    seen: set[int] = set()
    for n in np.flatnonzero(here).tolist():
        tied = set(a.tied_array[a.tied_ptr[n] : a.tied_ptr[n + 1]].tolist()) - seen
        yield f"weights of {graph.names[n]!r}", float(a.own_bytes[n] + a.tied_bytes[[*tied]].sum())
        seen |= tied
