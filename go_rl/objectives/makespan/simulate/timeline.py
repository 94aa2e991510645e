"""`timeline_of`: one iteration of a plan as slices on tracks, the way a profiler shows a real one.

``D`` devices, ``R`` engine pools and links. Seconds count from the start of the iteration.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float64, Int64

from go_rl.core import Objective, OpKind, PlanError, Problem, Status
from go_rl.core.decisions import Decisions
from go_rl.core.graph.fusion import heavy_nodes
from go_rl.objectives.makespan.simulate.jobs import NOBODY, Jobs
from go_rl.objectives.makespan.simulate.pricing import MakespanPricer
from go_rl.objectives.makespan.simulate.replay_arrays import ReplayArrays
from go_rl.objectives.makespan.simulate.replay_state import Trace
from go_rl.objectives.makespan.simulate.timeline_memory import MemoryUse, memory_use, read_copies

TRANSFER = "transfer"
"""``kind`` of the slices on links."""


@dataclass(frozen=True)
class Track:
    """An engine of a device, or the link from one device to another: one slice at a time."""

    device: int
    """Device whose engine runs the slice; for a link, its sender."""
    name: str
    """Name: ``stream``, ``stream 2`` of several engines, or ``0 → 1`` of a link."""
    to: int | None = None
    """The receiver; None: an engine."""


@dataclass(frozen=True)
class Slice:
    """A kernel, one engine's part of it, or a transfer."""

    name: str
    """The node's name, with `` +k`` for k more nodes in its kernel; of a transfer the producer's.
    """
    start: float
    """Start, seconds."""
    seconds: float
    """Seconds that the engine or link is taken: the gap after a node counts, a link's latency
    not."""
    track: int
    """Place in `Timeline.tracks`."""
    args: Mapping[str, Any]
    """``kind`` (of `OpKind`, or `TRANSFER`), ``backward``, ``device``, ``nodes`` (names),
    ``bytes`` (of its results, or moved), ``priority``; of a part of a kernel also ``parts``, of a
    transfer ``to``."""


@dataclass(frozen=True, eq=False)
class Timeline:
    """One step."""

    model: str
    """Name of the graph."""
    hardware: str
    """Name of the hardware."""
    status: Status
    """``ok``, or ``out-of-memory``."""
    makespan: float
    """Seconds of the iteration."""
    device_kinds: tuple[str, ...]
    """[D] kind of each device."""
    tracks: tuple[Track, ...]
    """All engines, device by device, then the links with traffic."""
    slices: tuple[Slice, ...]
    """Slices in order of starting; on one track none begins before the one before it has ended."""
    flows: tuple[tuple[int, int], ...]
    """Pairs of slices: a kernel and a transfer of its result, a transfer and a kernel that reads
    what it brings."""
    memory: tuple[MemoryUse, ...]
    """[D] memory in use of each device."""
    peak_bytes: Float64[np.ndarray, "D"]
    """[D] the most that is ever in use; more than any step of `memory` only where kernels that
    take no time follow each other within one moment."""


def timeline_of(problem: Problem, plans: Decisions) -> Timeline:
    """Replay the first row of legal decisions and return what happens when.

    A plan that needs more memory than there is has a timeline too; see
    `go_rl.report.timeline.plan_timeline` for a `Plan`.

    Raises:
        PlanError: the objective is not makespan, or a device cannot run one of its nodes.
    """
    if problem.objective is not Objective.MAKESPAN:
        raise PlanError(f"a timeline needs the objective makespan, not {problem.objective}")
    pricer = MakespanPricer(problem)
    status, makespan, trace = pricer.trace(plans)
    if status not in (Status.OK, Status.OUT_OF_MEMORY):
        raise PlanError(f"{problem.graph.name}: the plan cannot be replayed. {status.sentence}")
    step = _Iteration(problem, plans, pricer.arrays, pricer.jobs(plans), trace)
    return step.timeline(status, makespan)


class _Iteration:
    """A replayed plan; the methods read it."""

    def __init__(
        self, problem: Problem, plans: Decisions, arrays: ReplayArrays, jobs: Jobs, trace: Trace
    ) -> None:
        self.problem, self.arrays, self.jobs, self.trace = problem, arrays, jobs, trace
        self.device = plans.device[0].astype(np.int64)
        count = problem.graph.num_nodes
        self.leader = np.arange(count) if plans.kernel_leader is None else plans.kernel_leader[0]
        self.copies = read_copies(arrays, jobs)

    def timeline(self, status: Status, makespan: float) -> Timeline:
        tracks, first = self._tracks()
        trace = self.trace
        track = first[self.rows] + trace.slot
        args = self._kernel_args() | self._transfer_args()
        slices = tuple(
            Slice(args[job][0], start, end - start, place, args[job][1])
            for job, start, end, place in zip(
                trace.job.tolist(), trace.start.tolist(), trace.end.tolist(), track.tolist(),
                strict=True,
            )
        )  # fmt: skip
        return Timeline(
            model=self.problem.graph.name,
            hardware=self.problem.hardware.name,
            status=status,
            makespan=makespan,
            device_kinds=tuple(device.kind for device in self.problem.hardware.devices),
            tracks=tracks,
            slices=slices,
            flows=self._flows(),
            memory=memory_use(self.arrays, self.device, self.jobs, self.copies, trace),
            peak_bytes=trace.peak.copy(),
        )

    @cached_property
    def rows(self) -> Int64[np.ndarray, "P"]:
        """[P] engine pool of each piece; of a transfer, pools + from * D + to of the link."""
        jobs, count, nodes = self.jobs, self.jobs.copies[0], len(self.jobs.device)
        rows, devices = jobs.pool[self.trace.job], self.problem.hardware.num_devices
        at, to = jobs.copy_device[jobs.copy_home[:count]], jobs.copy_device[:count]
        # Pieces come in order of starting: a transfer's take the links of its route in turn.
        for piece in np.flatnonzero(self.trace.job >= nodes):
            copy = self.trace.job[piece] - nodes
            after = self.arrays.hop[at[copy], to[copy]]
            rows[piece] = len(self.arrays.engines) + at[copy] * devices + after
            at[copy] = after
        return rows

    def _tracks(self) -> tuple[tuple[Track, ...], Int64[np.ndarray, "R"]]:
        """All tracks, and the first track of each engine pool and link."""
        hardware, engines = self.problem.hardware, self.arrays.engines
        devices = hardware.num_devices
        first = np.zeros(len(engines) + devices * devices, np.int64)
        tracks: list[Track] = []
        pool = 0
        for number, device in enumerate(hardware.devices):
            for engine in device.engine_list:
                first[pool] = len(tracks)
                pool += 1
                for i in range(engine.count):
                    name = engine.name if engine.count == 1 else f"{engine.name} {i + 1}"
                    tracks.append(Track(number, name))
        for link in np.unique(self.rows).tolist():
            if link >= pool:
                first[link] = len(tracks)
                source, to = divmod(link - pool, devices)
                tracks.append(Track(source, f"{source} → {to}", to))
        return tuple(tracks), first

    def _kernel_args(self) -> dict[int, tuple[str, dict[str, Any]]]:
        """Name and args of every kernel's slices, by job."""
        graph, jobs = self.problem.graph, self.jobs
        members: dict[int, list[int]] = defaultdict(list)
        for node, leader in enumerate(self.leader.tolist()):
            members[leader].append(node)
        kind = graph.kind.copy()
        heavy = np.flatnonzero(heavy_nodes(graph))
        kind[self.leader[heavy]] = graph.kind[heavy]
        made = jobs.scratch + jobs.kept
        home = ~self.copies.arrives & (self.copies.node != NOBODY)
        np.add.at(made, self.copies.kernel[home], self.copies.bytes[home])
        found = {}
        for job in np.flatnonzero(jobs.pieces[: graph.num_nodes]).tolist():
            nodes, more = members[job], len(members[job]) - 1
            args = self._args(OpKind(int(kind[job])).name.lower(), job, nodes, made[job])
            if jobs.pieces[job] > 1:
                args["parts"] = int(jobs.pieces[job])
            found[job] = f"{graph.names[job]} +{more}" if more else str(graph.names[job]), args
        return found

    def _transfer_args(self) -> dict[int, tuple[str, dict[str, Any]]]:
        """Name and args of every transfer's slice, by job."""
        graph, found = self.problem.graph, {}
        for copy in np.flatnonzero(self.copies.arrives).tolist():
            node, job = int(self.copies.node[copy]), graph.num_nodes + copy
            args = self._args(TRANSFER, job, [node], self.copies.bytes[copy])
            found[job] = str(graph.names[node]), args | {"to": int(self.copies.device[copy])}
        return found

    def _args(self, kind: str, job: int, nodes: list[int], size: float) -> dict[str, Any]:
        graph = self.problem.graph
        return {
            "kind": kind,
            "backward": bool(graph.is_backward[nodes[0]]),
            "device": int(self.device[nodes[0]]),
            "nodes": [graph.names[n] for n in nodes],
            "bytes": float(size),
            "priority": int(self.jobs.priority[job]),
        }

    def _flows(self) -> tuple[tuple[int, int], ...]:
        count, trace = self.problem.graph.num_nodes, self.trace
        first, last = np.full(len(self.jobs.pool), NOBODY), np.full(len(self.jobs.pool), NOBODY)
        pieces = np.arange(len(trace.job))
        first[trace.job[::-1]] = pieces[::-1]
        by_end = np.argsort(trace.end, kind="stable")
        last[trace.job[by_end]] = by_end
        sent = np.flatnonzero(self.copies.arrives)
        brought = self.copies.arrives[self.copies.use_copy]
        sources = [last[self.copies.kernel[sent]], last[count + self.copies.use_copy[brought]]]
        targets = [first[count + sent], first[self.copies.use_kernel[brought]]]
        pairs = zip(*(np.concatenate(x).tolist() for x in (sources, targets)), strict=True)
        return tuple(sorted(pairs))
