"""`MakespanPricer`: seconds of placements, schedules and fusions on connected devices."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np
from jaxtyping import Float64, Int8, Int64

from go_rl.core import Evaluation, OpGraph, PlanError, Problem, Status
from go_rl.core.decisions import Decisions
from go_rl.core.errors import name_difference, name_largest
from go_rl.core.evaluation import OK, STATUS_CODES
from go_rl.objectives.makespan.simulate.jobs import NOBODY, Jobs, laid_out, new_jobs
from go_rl.objectives.makespan.simulate.replay import replay
from go_rl.objectives.makespan.simulate.replay_arrays import ReplayArrays, replay_arrays
from go_rl.objectives.makespan.simulate.replay_state import ReplayState, Trace, new_replay_state
from go_rl.objectives.makespan.simulate.timeline_memory import memory_spans, read_copies, use_of
from go_rl.runtime.threads import on_threads


class MakespanPricer:
    """Replays plans of one problem; build once, then price batches.

    Static rules are not checked: `go_rl.graphs.cutting.fusion` makes legal kernels, and
    `go_rl.verify.check_plan` verifies what is reported.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._whole = np.arange(problem.graph.num_nodes, dtype=np.int64)
        self._idle: list[tuple[Jobs, ReplayState]] = []

    @cached_property
    def arrays(self) -> ReplayArrays:
        """Arrays of the problem that the compiled replay reads."""
        return replay_arrays(self.problem)

    def price(self, plans: Decisions) -> tuple[Float64[np.ndarray, "B"], Int8[np.ndarray, "B"]]:
        """Return [B] seconds an iteration (inf: a failure) and [B] indices into `STATUS_CODES`."""
        count = len(plans.device)
        seconds, codes = np.empty(count), np.zeros(count, np.int8)

        def share(rows: range) -> None:
            room = self._borrow()
            for i in rows:
                codes[i], seconds[i], _ = replay(self.arrays, *self._rows(plans, i), *room)
            self._idle.append(room)

        _ = self.arrays
        on_threads(share, count)
        seconds[codes != OK] = np.inf
        return seconds, codes

    def trace(self, plans: Decisions, row: int = 0) -> tuple[Status, float, Trace]:
        """Return status, makespan (finite also where memory does not suffice) and all slices."""
        room = self._borrow()
        code, makespan, pieces = replay(self.arrays, *self._rows(plans, row), *room)
        trace = room[1].trace(pieces)
        self._idle.append(room)
        return STATUS_CODES[code], makespan, trace

    def jobs(self, plans: Decisions, row: int = 0) -> Jobs:
        """Return the kernels and transfers of a plan, which `Trace.job` numbers."""
        return laid_out(self.arrays, *self._rows(plans, row))

    def evaluate(self, plans: Decisions, row: int = 0) -> Evaluation:
        """Price one plan in full."""
        status, makespan, trace = self.trace(plans, row)
        devices = self.problem.hardware.num_devices
        leader = self._leader(plans, row)
        alone = leader == self._whole
        device = plans.device[row].astype(np.int64)
        seconds = np.where(alone, self._seconds(plans, row), 0.0)
        link, size = self._passed(*self._links(device, leader))
        moved = np.bincount(link, size, devices * devices).astype(np.float64)
        busy = moved / self.arrays.bandwidth.ravel()
        return Evaluation(
            status=status,
            seconds=makespan if status.ok else float("inf"),
            device_seconds=np.bincount(device, seconds, devices),
            link_seconds=busy,
            link_bytes=moved,
            weight_bytes=trace.weights.copy(),
            streamed_bytes=np.zeros(devices),
            peak_bytes=trace.peak.copy(),
            detail=self._detail(status, plans, row, trace),
        )

    def _detail(self, status: Status, plans: Decisions, row: int, trace: Trace) -> str:
        if status is not Status.OUT_OF_MEMORY:
            return "" if status.ok else status.sentence
        limit = np.array([device.memory_bytes for device in self.problem.hardware.devices])
        worst = int(np.argmax(trace.peak / limit))
        plan = plans.device[row].astype(np.int64), self._leader(plans, row)
        replayed = self.jobs(plans, row), trace
        held = list(held_at_peak(self.problem.graph, self.arrays, plan, replayed, worst))
        excess = trace.peak[worst] - limit[worst]
        return (
            f"device {worst} needs {trace.peak[worst]:.6g} bytes ({trace.weights[worst]:.6g} of "
            f"them weights); its memory is {limit[worst]:.6g}; the largest there at that moment: "
            f"{name_largest(held)}; {name_difference(held, excess)}"
        )

    def _links(
        self, device: Int64[np.ndarray, "N"], leader: Int64[np.ndarray, "N"]
    ) -> tuple[Int64[np.ndarray, "X"], Float64[np.ndarray, "X"]]:
        """Link (producer's device times D plus reader's) and bytes of every transfer."""
        a, devices = self.arrays, self.problem.hardware.num_devices
        tensor = np.repeat(np.arange(len(a.tensor_bytes)), np.diff(a.use_ptr))
        producer = np.repeat(self._whole, np.diff(a.tensor_of))[tensor]
        there = device[leader[a.user]]
        moved = (device[producer] != there) & ~a.fed[producer]
        pairs = np.unique(tensor[moved] * devices + there[moved])
        which, to = pairs // devices, pairs % devices
        owner = np.repeat(self._whole, np.diff(a.tensor_of))[which]
        return device[owner] * devices + to, a.tensor_bytes[which]

    def _passed(
        self, link: Int64[np.ndarray, "X"], size: Float64[np.ndarray, "X"]
    ) -> tuple[Int64[np.ndarray, "Y"], Float64[np.ndarray, "Y"]]:
        """Links of all routes, numbered as in `_links`, and the bytes on each."""
        at, to = np.divmod(link, self.problem.hardware.num_devices)
        found: list[tuple[np.ndarray, np.ndarray]] = []
        while len(at):
            after = self.arrays.hop[at, to]
            found.append((at * len(self.arrays.capacity) + after, size))
            on = after != to
            at, to, size = after[on], to[on], size[on]
        links, sizes = zip(*found, strict=True) if found else ((link,), (size,))
        return np.concatenate(links), np.concatenate(sizes)

    def _rows(
        self, plans: Decisions, row: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Device, priority, leader and seconds of each node, [N] each.

        Raises:
            PlanError: decisions for another number of nodes, which compiled code would not notice.
        """
        for name in ("device", "priority", "kernel_leader"):
            given = getattr(plans, name)
            if given is not None and len(given[row]) != len(self._whole):
                raise PlanError(
                    f"{name} has {len(given[row])} entries; {self.problem.graph.name!r} has "
                    f"{len(self._whole)} nodes"
                )
        priority = self._whole * 0 if plans.priority is None else plans.priority[row]
        priority = np.ascontiguousarray(priority)  # of one type: the replay is compiled once
        leader, device = self._leader(plans, row), plans.device[row].astype(np.int64)
        return device, priority, leader, self._seconds(plans, row)

    def _leader(self, plans: Decisions, row: int) -> Int64[np.ndarray, "N"]:
        return self._whole if plans.kernel_leader is None else plans.kernel_leader[row]

    def _seconds(self, plans: Decisions, row: int) -> Float64[np.ndarray, "N"]:
        """[N] seconds of each leader's kernel on its device."""
        problem, table = self.problem, self.problem.seconds
        if plans.kernel_leader is not None:
            table = self._kernels(plans.kernel_leader[row])
        kind = problem.device_kind[plans.device[row]]
        seconds = table[kind.astype(np.int64), self._whole]
        return np.where(self.arrays.fed, 0.0, seconds)

    def _kernels(self, leader: Int64[np.ndarray, "N"]) -> Float64[np.ndarray, "K N"]:
        """[K, N] seconds of kernels at their leaders; without prices of kernels, of their nodes."""
        if self.problem.kernels is not None:
            return self.problem.kernels.seconds(leader)
        count = len(leader)
        return np.stack([np.bincount(leader, row, count) for row in self.problem.seconds])

    def _borrow(self) -> tuple[Jobs, ReplayState]:
        """Return room for one replay, which its user gives back to ``_idle``."""
        try:
            return self._idle.pop()
        except IndexError:
            return new_jobs(self.arrays), new_replay_state(self.arrays)


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
