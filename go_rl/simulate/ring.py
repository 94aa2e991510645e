"""Pipeline throughput on a ring: T_max, the slowest chip or link (analytical model of
"Partitioning ML Models on Multi-Chip Modules", MLSys 2022).

- A chip is busy for the seconds of all nodes present on it, copies included.
- A tensor whose home is chip a and whose furthest consumer sits on chip b crosses the links
  a..b-1 once each, whatever lies between; a consumer that finds a copy on its own chip needs none.
- A chip's peak bytes are its resident weights (a weight group once), plus the largest sum of live
  tensors while it runs its nodes in topological order, plus, under the relay rule, the tensors it
  forwards. A received tensor lives from the start of the step to its last local consumer; a sent
  tensor, or a result of the model, from its making to the end of the step.
"""

from __future__ import annotations

import os
from typing import NamedTuple, no_type_check

import numpy as np
from jaxtyping import Bool, Float64, Int8, Int16, Int64
from numba import njit

from go_rl.core import Evaluation, Problem, Status
from go_rl.core.evaluation import STATUS_CODES
from go_rl.core.threads import on_threads
from go_rl.simulate.bitset import bit, highest, lowest, members
from go_rl.simulate.replication import presence, replicas_of, replicated_nodes
from go_rl.simulate.tensors import tensor_rows

OK = STATUS_CODES.index(Status.OK)
OUT_OF_MEMORY = STATUS_CODES.index(Status.OUT_OF_MEMORY)
ILLEGAL = STATUS_CODES.index(Status.ILLEGAL)
UNSUPPORTED = STATUS_CODES.index(Status.UNSUPPORTED)


class RingArrays(NamedTuple):
    """What the kernel reads. ``N`` nodes, ``T`` tensors (a node's result number i), ``k`` chips."""

    seconds: np.ndarray
    """[kinds, N]."""
    kind: np.ndarray
    """[k] row of `seconds`."""
    capacity: np.ndarray
    """[k] bytes; inf: not checked."""
    bandwidth: float
    latency: float
    relay: bool
    output_bytes: np.ndarray
    """[N] bytes allocated when a node runs."""
    weight_bytes: np.ndarray
    """[N]."""
    weight_group: np.ndarray
    """[N]."""
    groups: int
    is_output: np.ndarray
    """[N]."""
    tensor_of: np.ndarray
    """[N + 1] first tensor of each node."""
    tensor_bytes: np.ndarray
    """[T]."""
    use_ptr: np.ndarray
    """[T + 1] rows of `user`."""
    user: np.ndarray
    """[E] consumers of each tensor, ascending."""
    succ_ptr: np.ndarray
    """[N + 1] rows of `succ`, for copies."""
    succ: np.ndarray
    """[E]."""
    replicated: np.ndarray
    """[N]."""


def ring_arrays(problem: Problem) -> RingArrays:
    """Lay out a problem for the kernel."""
    graph = problem.graph
    tensors = tensor_rows(problem)
    offsets, edges = graph.successors
    links = problem.package.links
    limit = np.array([c.memory_bytes for c in problem.package.chips])
    return RingArrays(
        seconds=np.ascontiguousarray(problem.seconds),
        kind=problem.device_kind.astype(np.int64),
        capacity=limit if problem.memory else np.full(len(limit), np.inf),
        bandwidth=links.bandwidth,
        latency=links.latency_seconds,
        relay=problem.rules.relay,
        output_bytes=np.maximum(problem.output_bytes, tensors.made),
        weight_bytes=problem.weight_bytes,
        weight_group=graph.weight_group,
        groups=int(graph.weight_group.max(initial=-1)) + 1,
        is_output=graph.is_output,
        tensor_of=tensors.first,
        tensor_bytes=tensors.size,
        use_ptr=tensors.use_ptr,
        user=tensors.user,
        succ_ptr=offsets,
        succ=graph.receivers[edges],
        replicated=replicated_nodes(problem),
    )


@njit(cache=True, nogil=True)
@no_type_check
def _price(a: RingArrays, device, present, busy, traffic, held, peak) -> int:
    """Fill busy [k], traffic [k], held [k], peak [k] for one plan; return a status code."""
    nodes, chips = len(device), len(a.kind)
    busy[:] = 0.0
    traffic[:] = 0.0
    held[:] = 0.0
    peak[:] = 0.0
    status = OK
    group_on = np.zeros(a.groups, np.int64)
    events = 0
    for v in range(nodes):
        on = present[v]
        while on:
            c = lowest(on)
            on &= on - 1
            busy[c] += a.seconds[a.kind[c], v]
            g = a.weight_group[v]
            if g < 0:
                held[c] += a.weight_bytes[v]
            elif group_on[g] & bit(c) == 0:
                group_on[g] |= bit(c)
                held[c] += a.weight_bytes[v]
    for i in range(len(a.user)):
        events += members(present[a.user[i]])
    head = np.full(nodes, -1, np.int64)
    following = np.empty(events, np.int64)
    event_chip = np.empty(events, np.int64)
    event_bytes = np.empty(events, np.float64)
    live = np.zeros(chips, np.float64)
    events = 0
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
                if lowest(away) < home:
                    status = ILLEGAL
                far = max(home, highest(away))
                for c in range(home, far):
                    traffic[c] += size
                for c in range(home + 1, far + 1):
                    if away & bit(c) or a.relay:
                        live[c] += size
    for c in range(chips):
        peak[c] = live[c]
    for v in range(nodes):
        on = present[v]
        while on:
            c = lowest(on)
            on &= on - 1
            live[c] += a.output_bytes[v]
            peak[c] = max(peak[c], live[c])
        e = head[v]
        while e >= 0:
            live[event_chip[e]] -= event_bytes[e]
            e = following[e]
    for c in range(chips):
        peak[c] += held[c]
        if peak[c] > a.capacity[c] and status == OK:
            status = OUT_OF_MEMORY
        if not np.isfinite(busy[c]):
            status = UNSUPPORTED
    return status


@njit(cache=True, nogil=True)
@no_type_check
def _slowest(a: RingArrays, busy, traffic) -> float:
    worst = 0.0
    for c in range(len(busy)):
        worst = max(worst, busy[c])
        if traffic[c] > 0:
            worst = max(worst, traffic[c] / a.bandwidth + a.latency)
    return worst


@njit(cache=True, nogil=True)
@no_type_check
def _price_range(a: RingArrays, devices, first, step, values, codes) -> None:
    nodes, chips = devices.shape[1], len(a.kind)
    device, present = np.empty(nodes, np.int16), np.empty(nodes, np.int64)
    busy, traffic = np.empty(chips), np.empty(chips)
    held, peak = np.empty(chips), np.empty(chips)
    for b in range(first, len(devices), step):
        device[:] = devices[b]
        presence(a.succ_ptr, a.succ, a.replicated, device, present)
        codes[b] = _price(a, device, present, busy, traffic, held, peak)
        values[b] = _slowest(a, busy, traffic) if codes[b] == OK else np.inf


class RingPricer:
    """Prices plans of one ring problem; build once, then price batches.

    Static rules other than acyclicity are not checked: plans come from the solver, and
    `go_rl.core.check_plan` judges what is reported.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.arrays = ring_arrays(problem)

    @property
    def replicated(self) -> Bool[np.ndarray, "N"]:
        """[N] nodes copied to each consumer's chip."""
        return self.arrays.replicated

    def price(
        self, devices: Int16[np.ndarray, "B N"]
    ) -> tuple[Float64[np.ndarray, "B"], Int8[np.ndarray, "B"]]:
        """Return [B] seconds a step (inf for a failure) and [B] indices into `STATUS_CODES`.

        Copied nodes are placed where their consumers are, whatever ``devices`` says of them.
        """
        values, codes = np.empty(len(devices)), np.zeros(len(devices), np.int8)

        def price(rows: range) -> None:
            _price_range(self.arrays, devices, rows.start, rows.step, values, codes)

        few = min(os.cpu_count() or 1, max(1, len(devices) // 4))
        on_threads(price, len(devices), few)
        return values, codes

    def place(
        self, device: Int16[np.ndarray, "N"]
    ) -> tuple[Int16[np.ndarray, "N"], Int64[np.ndarray, "N"]]:
        """Return [N] home chips and [N] sets of chips where each node is present."""
        home, present = device.astype(np.int16), np.zeros(len(device), np.int64)
        presence(self.arrays.succ_ptr, self.arrays.succ, self.replicated, home, present)
        return home, present

    def evaluate(self, device: Int16[np.ndarray, "N"]) -> Evaluation:
        """Price one plan in full."""
        return self.evaluate_placed(*self.place(device))

    def replicas(self, device: Int16[np.ndarray, "N"]) -> dict[int, tuple[int, ...]]:
        """Return the ``replicas`` of the plan that `evaluate` prices."""
        return replicas_of(*self.place(device))

    def evaluate_placed(
        self, home: Int16[np.ndarray, "N"], present: Int64[np.ndarray, "N"]
    ) -> Evaluation:
        """Price one plan whose copies are given as [N] sets of chips."""
        chips = self.problem.package.num_chips
        busy, traffic, held, peak = (np.zeros(chips) for _ in range(4))
        code = int(_price(self.arrays, home, present, busy, traffic, held, peak))
        links = self.problem.package.links
        link_seconds = np.where(traffic > 0, traffic / links.bandwidth + links.latency_seconds, 0)
        streamed = np.zeros(chips)
        np.add.at(streamed, home, self.problem.streamed_bytes)
        status = STATUS_CODES[code]
        return Evaluation(
            status=status,
            seconds_per_step=_slowest(self.arrays, busy, traffic) if status.ok else float("inf"),
            device_seconds=busy,
            link_seconds=link_seconds,
            link_bytes=traffic,
            weight_bytes=held,
            streamed_bytes=streamed,
            peak_bytes=peak,
            detail="" if status.ok else self._explain(status, busy, peak),
        )

    def _explain(self, status: Status, busy: np.ndarray, peak: np.ndarray) -> str:
        if status is Status.OUT_OF_MEMORY:
            c = int(np.argmax(peak - self.arrays.capacity))
            return (
                f"chip {c} needs {peak[c] / 1e6:.3f} MB at its peak; "
                f"it has {self.arrays.capacity[c] / 1e6:.3f} MB"
            )
        if status is Status.UNSUPPORTED:
            return f"chip {int(np.argmax(~np.isfinite(busy)))} cannot run one of its nodes"
        return "a tensor would flow to a lower chip"
