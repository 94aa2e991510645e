"""The compiled part of `go_rl.objectives.ring.simulate.pricing`: what it reads, what it writes, and
how."""

from __future__ import annotations

from dataclasses import dataclass
from typing import no_type_check

import numpy as np
from jaxtyping import Bool, Float64, Int16, Int32, Int64

from go_rl.core import Problem
from go_rl.core.bitset import bit, highest, lowest
from go_rl.core.compiled_struct import CompiledStruct, compiled
from go_rl.core.evaluation import ILLEGAL, OK, OUT_OF_MEMORY, UNSUPPORTED
from go_rl.objectives.common.tensors import tensor_rows
from go_rl.solvers.replication import presence, replicated_nodes

NO_EVENT = np.int64(-1)
"""End of a list in `RingScratch`."""


@dataclass(frozen=True, eq=False)
class RingArrays(CompiledStruct):
    """Arrays of a problem that pricing reads. ``N`` nodes, ``T`` tensors (a node's result number
    i), ``k`` chips."""

    seconds: Float64[np.ndarray, "kinds N"]
    """[kinds, N] seconds of each node on each device kind."""
    kind: Int64[np.ndarray, "k"]
    """[k] row of `seconds`."""
    capacity: Float64[np.ndarray, "k"]
    """[k] bytes; inf: not checked."""
    bandwidth: float
    latency: float
    relay: bool
    output_bytes: Float64[np.ndarray, "N"]
    """[N] bytes allocated when a node runs."""
    own_bytes: Float64[np.ndarray, "N"]
    """[N] bytes of weights that no other node reads."""
    streamed_bytes: Float64[np.ndarray, "N"]
    """[N] bytes of weights that come from the host in each iteration."""
    tied_ptr: Int64[np.ndarray, "rows"]
    """[N + 1] rows of `tied_array`."""
    tied_array: Int32[np.ndarray, "R"]
    """[R] tied arrays that each node reads."""
    tied_bytes: Float64[np.ndarray, "A"]
    """[A] bytes of each tied array."""
    is_output: Bool[np.ndarray, "N"]
    """[N] nodes that make results of the model."""
    tensor_of: Int64[np.ndarray, "rows"]
    """[N + 1] first tensor of each node."""
    tensor_bytes: Float64[np.ndarray, "T"]
    """[T] bytes of each tensor."""
    use_ptr: Int64[np.ndarray, "tensors"]
    """[T + 1] rows of `user`."""
    user: Int32[np.ndarray, "E"]
    """[E] consumers of each tensor, ascending."""
    succ_ptr: Int32[np.ndarray, "rows"]
    """[N + 1] rows of `succ`, for copies."""
    succ: Int32[np.ndarray, "E"]
    """[E] consumers."""
    replicated: Bool[np.ndarray, "N"]
    """[N] nodes that are copied to their consumers."""


@dataclass(frozen=True, eq=False)
class RingScratch(CompiledStruct):
    """Scratch arrays of pricing one plan; one for each thread. ``A`` tied arrays."""

    device: Int16[np.ndarray, "N"]
    """[N] home chips."""
    present: Int64[np.ndarray, "N"]
    """[N] sets of chips."""
    busy: Float64[np.ndarray, "k"]
    """[k] seconds of work."""
    traffic: Float64[np.ndarray, "k"]
    """[k] bytes on the link behind each chip."""
    held: Float64[np.ndarray, "k"]
    """[k] bytes of weights."""
    streamed: Float64[np.ndarray, "k"]
    """[k] bytes of streamed weights."""
    peak: Float64[np.ndarray, "k"]
    """[k] peak of the bytes in use."""
    live: Float64[np.ndarray, "k"]
    """[k] bytes of tensors while the nodes run in turn."""
    array_on: Int64[np.ndarray, "A"]
    """[A] chips that hold a tied array."""
    head: Int64[np.ndarray, "N"]
    """[N] first event of each node: a tensor that is freed behind it; or `NO_EVENT`."""
    following: Int64[np.ndarray, "events"]
    """[events] next event of the same node."""
    event_chip: Int64[np.ndarray, "events"]
    event_bytes: Float64[np.ndarray, "events"]


def ring_scratch(arrays: RingArrays, events: int) -> RingScratch:
    """Allocate what pricing needs; an edge frees a tensor at most once for each copy of its end."""
    sizes = {"N": len(arrays.own_bytes), "k": len(arrays.kind), "A": len(arrays.tied_bytes)}
    return RingScratch.zeros({**sizes, "events": events})


def ring_arrays(problem: Problem) -> RingArrays:
    """Lay out a problem for pricing."""
    graph = problem.graph
    tensors, held = tensor_rows(problem), problem.held_weights
    offsets, edges = graph.successors
    links = problem.hardware.links
    limit = np.array([c.memory_bytes for c in problem.hardware.devices])
    return RingArrays(
        seconds=np.ascontiguousarray(problem.seconds),
        kind=problem.device_kind.astype(np.int64),
        capacity=limit if problem.memory else np.full(len(limit), np.inf),
        bandwidth=links.bandwidth,
        latency=links.latency_seconds,
        relay=problem.rules.relay,
        output_bytes=np.maximum(problem.output_bytes, tensors.made),
        own_bytes=held.own,
        streamed_bytes=problem.streamed_bytes,
        tied_ptr=held.offsets,
        tied_array=held.array,
        tied_bytes=held.tied,
        is_output=graph.is_output,
        tensor_of=tensors.first,
        tensor_bytes=tensors.size,
        use_ptr=tensors.use_ptr,
        user=tensors.user,
        succ_ptr=offsets,
        succ=graph.receivers[edges],
        replicated=replicated_nodes(problem),
    )


@compiled
@no_type_check
def _price(a: RingArrays, s: RingScratch) -> int:
    """Fill ``busy``, ``traffic``, ``held`` and ``peak`` for the plan in ``device`` and ``present``;
    return a status code."""
    for c in range(len(a.kind)):
        s.busy[c] = s.traffic[c] = s.held[c] = s.live[c] = 0.0
    _work(a, s)
    forward = _flows(a, s)
    _peaks(a, s)
    status = OK if forward else ILLEGAL
    for c in range(len(a.kind)):
        if s.peak[c] > a.capacity[c] and status == OK:
            status = OUT_OF_MEMORY
        if not np.isfinite(s.busy[c]):
            status = UNSUPPORTED
    return status


@compiled
@no_type_check
def _work(a: RingArrays, s: RingScratch) -> None:
    """Add seconds of work to ``busy`` and weights, a tied array once on a chip, to ``held``."""
    present, array_on, busy, held = s.present, s.array_on, s.busy, s.held
    for t in range(len(array_on)):
        array_on[t] = 0
    for v in range(len(present)):
        on = present[v]
        while on:
            c = lowest(on)
            on &= on - 1
            busy[c] += a.seconds[a.kind[c], v]
            held[c] += a.own_bytes[v]
            for i in range(a.tied_ptr[v], a.tied_ptr[v + 1]):
                t = a.tied_array[i]
                if array_on[t] & bit(c) == 0:
                    array_on[t] |= bit(c)
                    held[c] += a.tied_bytes[t]


@compiled
@no_type_check
def _flows(a: RingArrays, s: RingScratch) -> bool:
    """Add tensors to ``traffic`` and, where they lie from the start, to ``live``; list the events
    that free them. False: a tensor would flow to a lower chip."""
    device, present, head, traffic, live = s.device, s.present, s.head, s.traffic, s.live
    following, event_chip, event_bytes = s.following, s.event_chip, s.event_bytes
    nodes, events, forward = len(device), 0, True
    for v in range(nodes):
        head[v] = NO_EVENT
    for u in range(nodes):
        here, home = present[u], np.int64(device[u])
        for t in range(a.tensor_of[u], a.tensor_of[u + 1]):
            size, seen = a.tensor_bytes[t], np.int64(0)
            for i in range(a.use_ptr[t], a.use_ptr[t + 1]):
                seen |= present[a.user[i]]
            away = seen & ~here
            kept = bit(home) if away or a.is_output[u] else np.int64(0)
            for i in range(a.use_ptr[t + 1] - 1, a.use_ptr[t] - 1, -1):
                w = a.user[i]
                last = present[w] & seen & ~kept
                seen &= ~present[w]
                while last:
                    following[events] = head[w]
                    event_chip[events] = lowest(last)
                    event_bytes[events] = size
                    head[w] = events
                    events += 1
                    last &= last - 1
            if away:
                forward &= lowest(away) >= home
                far = max(home, highest(away))
                for c in range(home, far):
                    traffic[c] += size
                for c in range(home + 1, far + 1):
                    if away & bit(c) or a.relay:
                        live[c] += size
    return forward


@compiled
@no_type_check
def _peaks(a: RingArrays, s: RingScratch) -> None:
    """Run the nodes in turn, so that ``peak`` becomes the most that ``live`` and ``held`` reach."""
    present, head, live, peak = s.present, s.head, s.live, s.peak
    for c in range(len(live)):
        peak[c] = live[c]
    for v in range(len(present)):
        on = present[v]
        while on:
            c = lowest(on)
            on &= on - 1
            live[c] += a.output_bytes[v]
            peak[c] = max(peak[c], live[c])
        e = head[v]
        while e != NO_EVENT:
            live[s.event_chip[e]] -= s.event_bytes[e]
            e = s.following[e]
    for c in range(len(live)):
        peak[c] += s.held[c]


@compiled
@no_type_check
def _slowest(a: RingArrays, s: RingScratch) -> float:
    worst = 0.0
    for c in range(len(s.busy)):
        worst = max(worst, s.busy[c])
        if s.traffic[c] > 0:
            worst = max(worst, s.traffic[c] / a.bandwidth + a.latency)
    return worst


@compiled
@no_type_check
def price_range(a: RingArrays, s: RingScratch, devices, first, step, values, codes) -> None:
    """Price rows ``first``, ``first + step``, ... of [B, N] ``devices``; copies are placed."""
    device = s.device
    for b in range(first, len(devices), step):
        for v in range(len(device)):
            device[v] = devices[b, v]
        presence(a.succ_ptr, a.succ, a.replicated, device, s.present)
        codes[b] = _price(a, s)
        values[b] = _slowest(a, s) if codes[b] == OK else np.inf


@compiled
@no_type_check
def price_whole(a: RingArrays, s: RingScratch) -> tuple[int, float]:
    """Price the plan in ``device``, whose copies it finds, and stream its weights; return a status
    code and T_max."""
    presence(a.succ_ptr, a.succ, a.replicated, s.device, s.present)
    streamed = s.streamed
    for c in range(len(streamed)):
        streamed[c] = 0.0
    for v in range(len(s.present)):
        on = s.present[v] if a.streamed_bytes[v] > 0 else np.int64(0)
        while on:
            streamed[lowest(on)] += a.streamed_bytes[v]
            on &= on - 1
    code = _price(a, s)
    return code, _slowest(a, s)
