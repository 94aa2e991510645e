"""The compiled replay against its plain twin, the checker, Algorithm 2 of CDMPP, and what holds of
every schedule."""

from collections import Counter, defaultdict
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.cdmpp_replay import simulate
from reference.replay import replay
from reference.step_problems import decided, random_plans, random_step, step_problem

from go_rl.core import OpKind, Problem, Status
from go_rl.core.decisions import Decisions
from go_rl.core.evaluation import STATUS_CODES
from go_rl.objectives.makespan.simulate.jobs import laid_out
from go_rl.objectives.makespan.simulate.pricing import MakespanPricer
from go_rl.verify.makespan_value import replayed

FED = (OpKind.INPUT, OpKind.CONSTANT)


def test_the_kernel_agrees_with_its_twin_and_with_the_checker():
    """Four plans each: fused, tied, split, with gaps, latency and little memory."""
    seen: Counter[str] = Counter()
    for seed in range(100):
        problem = random_step(seed)
        device, priority, leader = random_plans(seed, problem, 4)
        plans, pricer = Decisions(device, priority, leader), MakespanPricer(problem)
        for i in range(4):
            status, makespan, trace = pricer.trace(plans, i)
            seen[status] += 1
            if status is Status.UNSUPPORTED:
                continue
            twin = replay(problem, *(x[i].tolist() for x in (device, priority, leader)))
            checked = replayed(problem, device[i], priority[i], leader[i])
            assert makespan == twin.seconds == checked.seconds
            assert trace.peak.tolist() == pytest.approx(twin.peak, rel=1e-9)
            assert checked.peak_bytes == pytest.approx(twin.peak, rel=1e-9)
            times = sorted(zip(trace.start.tolist(), trace.end.tolist(), strict=True))
            assert times == sorted((piece.start, piece.end) for piece in twin.pieces)
            seen["fused"] += bool((leader[i] != np.arange(leader.shape[1])).any())
    assert min(seen[Status.OK], seen[Status.OUT_OF_MEMORY], seen["fused"]) > 40
    assert seen[Status.UNSUPPORTED] > 16
    assert set(seen) == {Status.OK, Status.OUT_OF_MEMORY, Status.UNSUPPORTED, "fused"}


def test_priorities_at_the_ends_of_their_range_are_told_apart():
    """Adding all but nothing to the lowest number there is keeps the order, and so the plan."""
    for seed in range(25):
        problem = random_step(seed)
        device, priority, leader = random_plans(seed, problem, 1)
        pricer = MakespanPricer(problem)
        status, makespan, trace = pricer.trace(Decisions(device, priority, leader))
        if status is Status.UNSUPPORTED:
            continue
        far = priority - priority.min() + np.iinfo(np.int64).min
        low = pricer.trace(Decisions(device, far, leader))
        assert low[1] == makespan
        assert low[2].peak.tolist() == trace.peak.tolist()
        assert replayed(problem, device[0], far[0], leader[0]).seconds == makespan


def test_without_priorities_all_are_equal_and_without_leaders_nothing_is_fused():
    for seed in range(25):
        problem = random_step(seed)
        device, _, _ = random_plans(seed, problem, 1)
        count = problem.graph.num_nodes
        pricer = MakespanPricer(problem)
        plain, _ = pricer.price(Decisions(device))
        zeros, alone = np.zeros((1, count), np.int64), np.arange(count)[None]
        assert plain.tolist() == pricer.price(Decisions(device, zeros, alone))[0].tolist()
        if np.isfinite(plain[0]):
            assert plain[0] == replayed(problem, device[0], None, None).seconds


def test_a_batch_is_priced_as_its_plans_one_by_one():
    problem = random_step(3)
    plans = Decisions(*random_plans(3, problem, 33))
    pricer = MakespanPricer(problem)
    seconds, codes = pricer.price(plans)
    for i in range(33):
        status, makespan, _ = pricer.trace(plans, i)
        assert STATUS_CODES[codes[i]] is status
        assert seconds[i] == (makespan if status.ok else np.inf)


class Schedule:
    """A random plan, and what the compiled replay made of it."""

    def __init__(self, seed: int) -> None:
        self.problem = random_step(seed)
        device, priority, leader = random_plans(seed, self.problem, 1)
        self.device, self.leader = device[0].tolist(), leader[0].tolist()
        self.pricer = MakespanPricer(self.problem)
        plans = Decisions(device, priority, leader)
        self.status, self.makespan, self.trace = self.pricer.trace(plans)
        self.jobs = laid_out(
            self.pricer.arrays, device[0].astype(np.int64), priority[0], leader[0],
            np.zeros(leader.shape[1]),
        )  # fmt: skip
        self.start: dict[int, float] = {}
        self.end: dict[int, float] = {}
        for start, end, job in zip(self.trace.start, self.trace.end, self.trace.job, strict=True):
            self.start[int(job)] = min(self.start.get(int(job), np.inf), start)
            self.end[int(job)] = max(self.end.get(int(job), 0.0), end)


@given(st.integers(0, 50_000))
@settings(max_examples=30, deadline=None)
def test_no_two_slices_overlap_on_one_engine(seed):
    schedule = Schedule(seed)
    busy: dict[tuple[int, int], list[tuple[float, float]]] = defaultdict(list)
    trace = schedule.trace
    for start, end, job, slot in zip(trace.start, trace.end, trace.job, trace.slot, strict=True):
        busy[int(schedule.jobs.pool[job]), int(slot)].append((start, end))
    engines = schedule.pricer.arrays.engines
    for (pool, slot), slices in busy.items():
        assert slot < (engines[pool] if pool < len(engines) else 1)
        slices.sort()
        assert all(one[1] <= two[0] for one, two in pairwise(slices))


@given(st.integers(0, 50_000))
@settings(max_examples=30, deadline=None)
def test_every_kernel_starts_after_its_inputs_arrived(seed):
    schedule = Schedule(seed)
    if schedule.status is Status.UNSUPPORTED:
        return
    problem, graph = schedule.problem, schedule.problem.graph
    links = problem.hardware.links
    for e in range(graph.num_edges):
        u, v = int(graph.senders[e]), int(graph.receivers[e])
        one, two = schedule.leader[u], schedule.leader[v]
        if graph.kind[u] in FED or one == two:
            continue
        there = schedule.end[one]
        if schedule.device[u] != schedule.device[v]:
            there += problem.edge_bytes[e] / links.bandwidth + links.latency_seconds
        assert schedule.start[two] >= there - 1e-9


@given(st.integers(0, 50_000))
@settings(max_examples=30, deadline=None)
def test_no_makespan_is_below_the_longest_path_or_the_work_of_an_engine(seed):
    schedule = Schedule(seed)
    if schedule.status is Status.UNSUPPORTED:
        return
    trace, arrays = schedule.trace, schedule.pricer.arrays
    work = np.bincount(
        schedule.jobs.pool[trace.job], trace.end - trace.start, len(arrays.engines) + 16
    )[: len(arrays.engines)]
    assert (work <= schedule.makespan * arrays.engines + 1e-9).all()
    assert schedule.makespan >= longest_path(schedule) - 1e-9
    assert schedule.makespan == max(
        [*schedule.end.values(), *arrivals(schedule)], default=0.0
    )  # fmt: skip


def arrivals(schedule: Schedule) -> list[float]:
    nodes = schedule.problem.graph.num_nodes
    latency = schedule.problem.hardware.links.latency_seconds
    return [end + latency for job, end in schedule.end.items() if job >= nodes]


def longest_path(schedule: Schedule) -> float:
    """Through kernels and their transfers, by relaxing the edges as often as there are nodes."""
    problem, graph = schedule.problem, schedule.problem.graph
    links, takes = problem.hardware.links, {}
    for job, start in schedule.start.items():
        takes[job] = schedule.end[job] - start
    ready = dict.fromkeys(takes, 0.0)
    for _ in range(graph.num_nodes):
        for e in range(graph.num_edges):
            u, v = int(graph.senders[e]), int(graph.receivers[e])
            one, two = schedule.leader[u], schedule.leader[v]
            if graph.kind[u] in FED or one == two:
                continue
            away = schedule.device[u] != schedule.device[v]
            send = problem.edge_bytes[e] / links.bandwidth + links.latency_seconds
            ready[two] = max(ready[two], ready[one] + takes[one] + send * away)
    nodes = range(graph.num_nodes)
    return max((ready[n] + takes[n] for n in nodes if n in ready), default=0.0)


def by_algorithm_2(problem: Problem, device: list[int]):
    graph = problem.graph
    pairs = sorted({(int(u), int(v)) for u, v in zip(graph.senders, graph.receivers, strict=True)})
    gap = problem.gap_seconds
    gaps = [0.0] * graph.num_nodes if gap is None else gap.tolist()
    return simulate(problem.seconds[0].tolist(), gaps, pairs, device)


def starts(problem: Problem, device: list[int], order: list[int]) -> tuple[float, list[float]]:
    """Makespan and starts when the operators of ``order`` come first in this order."""
    priority = np.empty(len(order), np.int64)
    priority[order] = -np.arange(len(order))
    _, makespan, trace = MakespanPricer(problem).trace(decided(device, priority))
    of_nodes = trace.job < len(order)
    found = dict(zip(trace.job[of_nodes].tolist(), trace.start[of_nodes].tolist(), strict=True))
    return makespan, [found[n] for n in range(len(order))]


def unfed(rng: np.random.Generator, nodes: int, edges, devices: int, **options) -> Problem:
    """Whole seconds and gaps, no inputs, tensors that travel in no time."""
    seconds = rng.integers(0, 5, nodes).astype(float).tolist()
    gap = rng.integers(0, 3, nodes).astype(float).tolist()
    return step_problem(seconds, [(u, v, 0.0) for u, v in edges], devices, gap=gap, **options)


def test_on_one_device_the_replay_is_algorithm_2_of_cdmpp():
    """Algorithm 2 runs what has been ready longest. Its order puts producers first, so with that
    order as priority the next operator is ready whenever the engine is, and is the most urgent:
    both start every operator at the same moment, gaps included."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        nodes = int(rng.integers(1, 15))
        edges = [(u, v) for v in range(nodes) for u in range(v) if rng.random() < 0.3]
        problem = unfed(rng, nodes, edges, 1)
        theirs = by_algorithm_2(problem, [0] * nodes)
        makespan, start = starts(problem, [0] * nodes, theirs.order)
        assert (makespan, start) == (theirs.iteration_time, theirs.start)


def test_on_many_devices_they_agree_where_no_device_ever_has_a_choice():
    """The operators of each device depend on each other in a row: both find the longest path."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        nodes, devices = int(rng.integers(1, 15)), int(rng.integers(1, 5))
        device = rng.integers(0, devices, nodes).tolist()
        edges = {(u, v) for v in range(nodes) for u in range(v) if rng.random() < 0.2}
        for d in range(devices):
            row = [n for n in range(nodes) if device[n] == d]
            edges |= set(pairwise(row))
        problem = unfed(rng, nodes, sorted(edges), devices)
        theirs = by_algorithm_2(problem, device)
        makespan, start = starts(problem, device, theirs.order)
        assert (makespan, start) == (theirs.iteration_time, theirs.start)


def test_algorithm_2_commits_a_device_to_an_operator_that_is_not_ready_yet():
    """Why they differ elsewhere: at 0 it books node 2 on device 0 from 10 to 15, and so node 3,
    ready at 4, from 15 to 20. Event by event node 3 runs from 4 to 9."""
    problem = step_problem([10.0, 4.0, 5.0, 5.0], [(0, 2, 0.0), (1, 3, 0.0)], 3)
    theirs = by_algorithm_2(problem, [1, 2, 0, 0])
    assert (theirs.iteration_time, theirs.start) == (20.0, [0.0, 0.0, 10.0, 15.0])
    assert starts(problem, [1, 2, 0, 0], theirs.order) == (15.0, [0.0, 0.0, 10.0, 4.0])
