"""`replayed`: one iteration of a plan on connected devices, slow and obvious.

Shares no code with simulators. The definition is in docs/objectives.md, section makespan.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Int

from go_rl.core.graph.op_kind import PRODUCT_KINDS, OpKind
from go_rl.core.problem import Problem
from go_rl.verify.pair_link import pair_route

ResultOf = tuple[int, int]
"""Producing node and number of the result."""
Entry = tuple[int, tuple[int, int, int], int]
"""Place of a job in a queue, the most urgent first."""


ENDS, ARRIVES, READY = "ends", "arrives", "ready"
"""Events: an engine or link is free again, a result is there, a transfer may take its next link."""


@dataclass(frozen=True)
class Replayed:
    """Time and memory of one iteration."""

    seconds: float
    peak_bytes: list[float]
    """[D] peak bytes on each device."""
    peak_round: list[int] = field(default_factory=list, compare=False)
    """[D] the first round at whose end the peak is reached."""
    device_seconds: list[float] = field(default_factory=list, compare=False)
    """[D] seconds of the kernels of each device, without gaps."""
    link_bytes: list[float] = field(default_factory=list, compare=False)
    """[D * D] bytes from device i to device j, at i D + j."""


class _Job:
    """A kernel, or the transfer of a tensor over one link of its route to a device."""

    def __init__(self, key: tuple[int, int, int], pool: tuple[str, int, int]) -> None:
        self.key = key
        """Breaks ties: kernels by their lowest node, then transfers by producer and result."""
        self.pool = pool
        self.priority = -(2**63)
        self.seconds = 0.0
        self.delay = 0.0
        self.pieces = 1
        self.running = 1
        self.waits: set[int] = set()
        self.after: list[_Job] = []
        self.onward: _Job | None = None
        """The transfer over the next link, ready `delay` after the start of this one."""
        self.takes: list[_Copy] = []
        """Copies that occupy memory from its start."""
        self.holds: list[_Copy] = []
        """Copies that may be freed once this has ended."""

    @property
    def entry(self) -> Entry:
        """Place in a queue."""
        return -self.priority, self.key, id(self)


class _Copy:
    """A tensor on one device."""

    def __init__(self, device: int, node: int, size: float) -> None:
        self.device, self.node, self.size, self.left = device, node, size, 0


def replayed(
    problem: Problem,
    device: Int[np.ndarray, "N"],
    priority: Int[np.ndarray, "N"] | None,
    group: Int[np.ndarray, "N"] | None,
) -> Replayed:
    """Replay a legal plan: [N] devices, [N] priorities (None: all equal), [N] fusion groups named
    by their lowest node (None: nothing is fused)."""
    return _Replay(problem, device, priority, group).run()


def held_at_peak(
    problem: Problem,
    device: Int[np.ndarray, "N"],
    priority: Int[np.ndarray, "N"] | None,
    group: Int[np.ndarray, "N"] | None,
    where: int,
) -> list[tuple[str, float]]:
    """Return the contents of device ``where`` at its peak, with bytes; the plan as for
    `replayed`, which runs again."""
    last = replayed(problem, device, priority, group).peak_round[where]
    step = _Replay(problem, device, priority, group)
    step.run(last)
    names = problem.graph.names
    results = ((f"result of {names[c.node]!r}", c.size) for c in step.there if c.device == where)
    weights = ((f"weights of {names[n]!r}", size) for n, d, size in step.weights if d == where)
    return [*weights, *results]


class _Replay:
    def __init__(
        self,
        problem: Problem,
        device: np.ndarray,
        priority: np.ndarray | None,
        group: np.ndarray | None,
    ) -> None:
        count = problem.graph.num_nodes
        self.problem = problem
        self.device = [int(d) for d in device]
        self.leader = list(range(count)) if group is None else [int(g) for g in group]
        self.fed = problem.graph.is_fed.tolist()
        self.live = [0.0] * problem.hardware.num_devices
        self.there: dict[_Copy, None] = {}
        """Copies that occupy memory now, in the order of allocation."""
        self.weights: list[tuple[int, int, float]] = []
        """(node, device, bytes), a weight group once a device."""
        urgency = [0] * count if priority is None else [int(p) for p in priority]
        self.device_seconds = [0.0] * problem.hardware.num_devices
        self.link_bytes = [0.0] * problem.hardware.num_devices**2
        self.jobs: dict[int, _Job] = {}
        self.links: list[_Job] = []
        self.transfers = 0
        self.tensors = self._tensors()
        self._make_jobs(urgency)
        self._add_weights()
        for (node, _), (size, readers) in self.tensors.items():
            self._add_tensor(node, size, readers)

    def _make_jobs(self, urgency: list[int]) -> None:
        problem, members = self.problem, defaultdict(list)
        for node, leader in enumerate(self.leader):
            if not self.fed[node]:
                members[leader].append(node)
        prices = problem.seconds
        if problem.kernels is not None:
            prices = problem.kernels.seconds(np.array(self.leader, np.int64))
        made = [0.0] * len(self.leader)
        for (node, _), (size, _) in self.tensors.items():
            made[node] += size
        for leader, nodes in members.items():
            where = self.device[leader]
            kinds = [OpKind(int(problem.graph.kind[n])) for n in nodes]
            kind = next((k for k in reversed(kinds) if k in PRODUCT_KINDS), kinds[0])
            runs = problem.hardware.devices[where]
            place = runs.engine_of(kind)
            engine = runs.engine_list[place]
            job = _Job((0, leader, 0), ("engine", where, place))
            job.priority = max(urgency[n] for n in nodes)
            job.pieces = job.running = engine.count if engine.split else 1
            priced = nodes if problem.kernels is None else [leader]
            seconds = sum(float(prices[problem.device_kind[where], n]) for n in priced)
            self.device_seconds[where] += seconds
            gaps = problem.gap_seconds
            gap = 0.0 if gaps is None else max(float(gaps[n]) for n in nodes)
            job.seconds = seconds / job.pieces + gap
            for n in nodes:
                size = max(float(problem.output_bytes[n]) - made[n], 0.0)
                copy = _Copy(where, n, size)
                copy.left = 2 if problem.graph.is_output[n] else 1
                job.takes.append(copy)
                job.holds.append(copy)
            self.jobs[leader] = job

    def _add_weights(self) -> None:
        problem, seen = self.problem, set()
        arrays: dict[int, list[int]] = {}
        for node, array in zip(
            problem.graph.tied_node.tolist(), problem.graph.tied_array.tolist(), strict=True
        ):
            arrays.setdefault(node, []).append(array)
        for node, where in enumerate(self.device):
            size = float(problem.weight_bytes[node])
            tied = arrays.get(node, []) if size > 0 else []
            size -= sum(float(problem.tied_bytes[t]) for t in tied if (t, where) in seen)
            seen |= {(t, where) for t in tied}
            self.live[where] += max(size, 0.0)
            self.weights.append((node, where, max(size, 0.0)))

    def _tensors(self) -> dict[ResultOf, tuple[float, list[int]]]:
        """Size and readers of every tensor."""
        graph, found = self.problem.graph, {}
        edges = zip(
            graph.senders.tolist(), graph.edge_output.tolist(), graph.receivers.tolist(),
            self.problem.edge_bytes.tolist(), strict=True,
        )  # fmt: skip
        for u, output, v, size in sorted(edges):
            largest, readers = found.get((u, output), (0.0, []))
            found[u, output] = (max(largest, size), [*readers, v])
        return found

    def _add_tensor(self, node: int, size: float, readers: list[int]) -> None:
        by_device: dict[int, list[_Job]] = defaultdict(list)
        own = self.leader[node]
        for leader in dict.fromkeys(self.leader[v] for v in readers):
            if leader != own or self.fed[node]:
                by_device[self.device[leader]].append(self.jobs[leader])
        if self.fed[node]:
            for where, jobs in by_device.items():
                copy = _Copy(where, node, size)
                self._share(copy, jobs)
                self._take(copy)
            return
        producer, home = self.jobs[own], self.device[own]
        kept = _Copy(home, node, size)
        kept.left = int(self.problem.graph.is_output[node])
        self._share(kept, by_device.pop(home, []), producer)
        for where, jobs in by_device.items():
            route = self._route(home, where, size)
            for number, transfer in enumerate(route):
                transfer.key = (1, self.transfers, number)
                transfer.priority = max(job.priority for job in jobs)
            self.transfers += 1
            self.links += route
            copy = _Copy(where, node, size)
            route[0].takes.append(copy)
            route[0].waits.add(id(producer))
            producer.after.append(route[0])
            self._share(kept, [route[-1]])
            self._share(copy, jobs, route[-1])
        if kept.left:
            producer.takes.append(kept)

    def _route(self, home: int, where: int, size: float) -> list[_Job]:
        """Transfers over the links from one device to another, the last of which ends it."""
        route: list[_Job] = []
        for source, to, link in pair_route(self.problem.hardware.links, home, where):
            self.link_bytes[source * len(self.live) + to] += size
            transfer = _Job((1, 0, 0), link.channel)
            transfer.seconds, transfer.delay = size / link.bandwidth, link.latency
            if route:
                route[-1].onward = transfer
                transfer.waits.add(id(route[-1]))
            route.append(transfer)
        return route

    def _share(self, copy: _Copy, readers: list[_Job], maker: _Job | None = None) -> None:
        for reader in readers:
            copy.left += 1
            reader.holds.append(copy)
            if maker is not None:
                reader.waits.add(id(maker))
                maker.after.append(reader)

    def run(self, last: int = -1) -> Replayed:
        """All jobs that end at a moment are processed before any starts; ``last``: the round to
        stop at, whose memory is then in `there`."""
        jobs = [*self.jobs.values(), *self.links]
        ready: dict[tuple[str, int, int], list[Entry]] = defaultdict(list)
        idle = {job.pool: self._engines(job.pool) for job in jobs}
        by_id = {id(job): job for job in jobs}
        for job in jobs:
            if not job.waits:
                heapq.heappush(ready[job.pool], job.entry)
        to_start = {id(job): job.pieces for job in jobs}
        events: list[tuple[float, int, int, str]] = []
        peak, when, rounds = list(self.live), [0] * len(self.live), 0
        now, end, number = 0.0, 0.0, 0
        while True:
            for pool, queue in ready.items():
                while queue and idle[pool]:
                    job = by_id[queue[0][2]]
                    if to_start[id(job)] == job.pieces:
                        for copy in job.takes:
                            self._take(copy)
                    to_start[id(job)] -= 1
                    if not to_start[id(job)]:
                        heapq.heappop(queue)
                    idle[pool] -= 1
                    number += 1
                    heapq.heappush(events, (now + job.seconds, number, id(job), ENDS))
                    if job.onward is not None:
                        onward = (now + job.delay, number, id(job.onward), READY)
                        heapq.heappush(events, onward)
            for where, live in enumerate(self.live):
                if live > peak[where] or rounds == 0:
                    peak[where], when[where] = live, rounds
            if not events or rounds == last:
                break
            rounds += 1
            now = events[0][0]
            while events and events[0][0] == now:
                _, _, which, what = heapq.heappop(events)
                job = by_id[which]
                if what == READY:
                    heapq.heappush(ready[job.pool], job.entry)
                    continue
                idle[job.pool] += what == ENDS
                if job.onward is not None:
                    continue
                if what == ENDS and job.delay > 0:
                    number += 1
                    heapq.heappush(events, (now + job.delay, number, which, ARRIVES))
                    continue
                job.running -= 1
                if job.running:
                    continue
                end = now
                self._end(job)
                for after in dict.fromkeys(job.after):
                    after.waits.discard(which)
                    if not after.waits:
                        heapq.heappush(ready[after.pool], after.entry)
        return Replayed(end, peak, when, self.device_seconds, self.link_bytes)

    def _take(self, copy: _Copy) -> None:
        self.live[copy.device] += copy.size
        self.there[copy] = None

    def _end(self, job: _Job) -> None:
        for copy in job.holds:
            copy.left -= 1
            if not copy.left:
                self.live[copy.device] -= copy.size
                self.there.pop(copy, None)

    def _engines(self, pool: tuple[str, int, int]) -> int:
        sort, where, place = pool
        if sort in ("link", "port", "bus"):
            return 1
        return self.problem.hardware.devices[where].engine_list[place].count
