"""One step on connected devices, as docs/objectives.md reads, section makespan.

Nothing is kept up to date: at every round all jobs are looked through again, and memory is found
afterwards, from when each tensor came and went. A *round* is what happens between two looks at the
clock: first everything that ends now, then everything that starts; what takes no time ends in the
next round at the same moment.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from reference.held import weights_held

from go_rl.core import OpKind, Problem

FED = (OpKind.INPUT, OpKind.CONSTANT)
NEVER = 10**9
"""A round after the last."""
Name = tuple[str, int, int]
"""("run", leader, 0) or ("send", tensor, device); sorted, they break ties."""
Place = tuple[str, int, int]
"""("engine", device, which) or ("link", from, to)."""


class Job(NamedTuple):
    """A kernel that runs or a tensor that is sent."""

    name: Name
    place: Place
    priority: int
    pieces: int
    seconds: float
    delay: float
    needs: frozenset[Name]


class Piece(NamedTuple):
    """Part of a job on one engine or link."""

    name: Name
    start: float
    end: float
    round: int


class Tensor(NamedTuple):
    """One result of one node."""

    source: int
    size: float
    readers: tuple[int, ...]
    """Leaders of kernels other than the producer's."""


class Step(NamedTuple):
    """What happened."""

    seconds: float
    peak: list[float]
    pieces: list[Piece]


class Case(NamedTuple):
    """A problem and what was decided."""

    problem: Problem
    device: Sequence[int]
    priority: Sequence[int]
    leader: Sequence[int]

    def fed(self, node: int) -> bool:
        return OpKind(int(self.problem.graph.kind[node])) in FED

    def members(self, leader: int) -> list[int]:
        return [n for n, lead in enumerate(self.leader) if lead == leader]

    @property
    def leaders(self) -> list[int]:
        return sorted({lead for n, lead in enumerate(self.leader) if not self.fed(n)})

    def urgency(self, leader: int) -> int:
        return max(self.priority[n] for n in self.members(leader))


def replay(
    problem: Problem,
    device: Sequence[int],
    priority: Sequence[int] | None = None,
    leader: Sequence[int] | None = None,
) -> Step:
    """Replay a legal case."""
    count = range(problem.graph.num_nodes)
    case = Case(problem, device, priority or [0 for _ in count], leader or list(count))
    tensors = find_tensors(case)
    jobs = runs(case, tensors) + sends(case, tensors)
    pieces, arrived = clockwork(case, jobs)
    assert len(arrived) == len(jobs), "kernels wait for each other"
    last = max((time for time, _ in arrived.values()), default=0.0)
    return Step(last, peaks(case, tensors, pieces, arrived), pieces)


def find_tensors(case: Case) -> list[Tensor]:
    """By producer and number of the result; as large as the largest of the edges."""
    graph, edges = case.problem.graph, {}
    for e in range(graph.num_edges):
        edges.setdefault((int(graph.senders[e]), int(graph.edge_output[e])), []).append(e)
    found = []
    for (u, _), ids in sorted(edges.items()):
        readers = {case.leader[int(graph.receivers[e])] for e in ids} - {case.leader[u]}
        size = max(float(case.problem.edge_bytes[e]) for e in ids)
        found.append(Tensor(u, size, tuple(sorted(readers))))
    return found


def devices_of(case: Case, tensor: Tensor) -> list[int]:
    """Other devices that read a tensor."""
    return sorted({case.device[r] for r in tensor.readers} - {case.device[tensor.source]})


def runs(case: Case, tensors: list[Tensor]) -> list[Job]:
    """The kernels."""
    problem, made = case.problem, []
    prices = problem.seconds
    if problem.kernels:
        prices = problem.kernels.seconds(np.array(case.leader, np.int64))
    for leader in case.leaders:
        nodes, where = case.members(leader), case.device[leader]
        kinds = [OpKind(int(problem.graph.kind[n])) for n in nodes]
        heavy = [k for k in kinds if k in (OpKind.MATMUL, OpKind.CONVOLUTION)]
        which = engine_for(problem, where, (heavy or kinds)[0])
        engine = problem.hardware.devices[where].engine_list[which]
        pieces = engine.count if engine.split else 1
        row = problem.hardware.kinds.index(problem.hardware.devices[where].kind)
        gap = 0.0 if problem.gap_seconds is None else max(problem.gap_seconds[n] for n in nodes)
        needs = set()
        for i, t in enumerate(tensors):
            if leader in t.readers and not case.fed(t.source):
                home = case.device[t.source] == where
                needs.add(("run", case.leader[t.source], 0) if home else ("send", i, where))
        seconds = float(prices[row, leader]) / pieces + float(gap)
        made.append(Job(("run", leader, 0), ("engine", where, which), case.urgency(leader), pieces,
                        seconds, 0.0, frozenset(needs)))  # fmt: skip
    return made


def engine_for(problem: Problem, device: int, kind: OpKind) -> int:
    """The engine that names the kind, else the one that names none."""
    engines = problem.hardware.devices[device].engine_list
    for i, engine in enumerate(engines):
        if kind.name.lower() in engine.kinds:
            return i
    return next(i for i, engine in enumerate(engines) if not engine.kinds)


def sends(case: Case, tensors: list[Tensor]) -> list[Job]:
    """The transfers: each tensor once to each other device that reads it."""
    links = case.problem.hardware.links
    return [
        Job(
            ("send", i, there),
            ("link", case.device[t.source], there),
            max(case.urgency(r) for r in t.readers if case.device[r] == there),
            1,
            t.size / links.bandwidth,
            links.latency_seconds,
            frozenset({("run", case.leader[t.source], 0)}),
        )
        for i, t in enumerate(tensors)
        if not case.fed(t.source)
        for there in devices_of(case, t)
    ]


def clockwork(case: Case, jobs: list[Job]) -> tuple[list[Piece], dict[Name, tuple[float, int]]]:
    """Pieces in order of starting; when and in which round each job's results were there."""
    by_name = {job.name: job for job in jobs}
    pieces: list[Piece] = []
    busy: list[tuple[float, Name]] = []
    under_way: list[tuple[float, Name]] = []
    arrived: dict[Name, tuple[float, int]] = {}
    now, number = 0.0, 0
    while True:
        for place in {job.place for job in jobs}:
            while job := next_job(case, jobs, pieces, busy, arrived, place):
                pieces.append(Piece(job.name, now, now + job.seconds, number))
                busy.append((now + job.seconds, job.name))
        if not busy and not under_way:
            return pieces, arrived
        number += 1
        now = min(time for time, _ in busy + under_way)
        ended = [name for time, name in busy if time == now]
        landed = [name for time, name in under_way if time == now]
        busy = [(time, name) for time, name in busy if time > now]
        under_way = [(time, name) for time, name in under_way if time > now]
        for name in ended:
            started = sum(piece.name == name for piece in pieces)
            left = sum(other == name for _, other in busy)
            if by_name[name].delay > 0:
                under_way.append((now + by_name[name].delay, name))
            elif started == by_name[name].pieces and left == 0:
                landed.append(name)
        arrived |= dict.fromkeys(landed, (now, number))


def next_job(case, jobs, pieces, busy, arrived, place) -> Job | None:
    """What an idle engine or link of a place starts: the most urgent that is ready."""
    of = {job.name: job.place for job in jobs}
    engines = 1
    if place[0] == "engine":
        engines = case.problem.hardware.devices[place[1]].engine_list[place[2]].count
    if sum(of[name] == place for _, name in busy) == engines:
        return None
    ready = [
        job for job in jobs
        if job.place == place and job.needs <= arrived.keys()
        and sum(piece.name == job.name for piece in pieces) < job.pieces
    ]  # fmt: skip
    return min(ready, key=lambda job: (-job.priority, job.name), default=None)


def peaks(case: Case, tensors, pieces, arrived) -> list[float]:
    """Most bytes on each device after the starts of any round; tied weights count once."""
    stays = lifetimes(case, tensors, pieces, arrived)
    last = max((number for _, number in arrived.values()), default=0)
    return [
        weights_held(case.problem, [n for n, where in enumerate(case.device) if where == d]) + max(
            sum(size for where, size, first, end in stays if where == d and first <= r < end)
            for r in range(last + 1)
        )
        for d in range(case.problem.hardware.num_devices)
    ]  # fmt: skip


def lifetimes(case: Case, tensors, pieces, arrived) -> list[tuple[int, float, int, int]]:
    """(device, bytes, first round, round of its going) of everything beside weights."""
    begun: dict[Name, int] = {}
    for piece in pieces:
        begun.setdefault(piece.name, piece.round)
    gone = {name: number for name, (_, number) in arrived.items()}
    kept, stays = case.problem.graph.is_output, []
    unread = [float(size) for size in case.problem.output_bytes]
    for i, t in enumerate(tensors):
        unread[t.source] -= t.size
        home, run = case.device[t.source], ("run", case.leader[t.source], 0)
        readers = {d: [gone["run", r, 0] for r in t.readers if case.device[r] == d]
                   for d in range(case.problem.hardware.num_devices)}  # fmt: skip
        if case.fed(t.source):
            stays += [(d, t.size, 0, max(ends)) for d, ends in readers.items() if ends]
            continue
        away = devices_of(case, t)
        ends = readers[home] + [gone["send", i, d] for d in away]
        ends += [NEVER] if kept[t.source] else []
        if ends:
            stays.append((home, t.size, begun[run], max(ends)))
        stays += [(d, t.size, begun["send", i, d], max(readers[d])) for d in away]
    for n, size in enumerate(unread):
        if not case.fed(n) and size > 0:
            run = ("run", case.leader[n], 0)
            end = NEVER if kept[n] else gone[run]
            stays.append((case.device[n], size, begun[run], end))
    return stays
