"""The replay, against the reference and in memory."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from reference.link_groups import random_links, random_mesh, with_random_links
from reference.replay import replay
from reference.step_problems import Summed, decided, random_plans, random_step, step_problem

from go_rl.core import OpKind, Problem, Status
from go_rl.core.decisions import Decisions
from go_rl.core.evaluation import STATUS_CODES
from go_rl.objectives.makespan.simulate.pricing import MakespanPricer, held_at_peak
from go_rl.verify import makespan_value
from go_rl.verify.makespan_value import replayed


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


@pytest.mark.parametrize(("draw", "hops"), [(random_links, 1), (random_mesh, 3)])
def test_the_kernel_agrees_with_the_checker_on_links_of_all_kinds(draw, hops):
    """Two plans each; on a mesh tensors go by way of other devices."""
    seen = most = 0
    for seed in range(80):
        problem = with_random_links(seed, random_step(seed), draw)
        device, priority, leader = random_plans(seed, problem, 2)
        pricer, plans = MakespanPricer(problem), Decisions(device, priority, leader)
        for i in range(2):
            status, makespan, trace = pricer.trace(plans, i)
            if status is Status.UNSUPPORTED:
                continue
            checked = replayed(problem, device[i], priority[i], leader[i])
            assert makespan == pytest.approx(checked.seconds, rel=1e-12)
            assert trace.peak.tolist() == pytest.approx(checked.peak_bytes, rel=1e-9)
            found = pricer.evaluate(plans, i)
            assert found.link_bytes.tolist() == pytest.approx(checked.link_bytes)
            seen, most = seen + 1, max(most, pricer.arrays.most_hops)
    assert seen > 80
    assert most >= hops


def test_a_batch_is_priced_as_its_plans_one_by_one():
    problem = random_step(3)
    plans = Decisions(*random_plans(3, problem, 33))
    pricer = MakespanPricer(problem)
    seconds, codes = pricer.price(plans)
    for i in range(33):
        status, makespan, _ = pricer.trace(plans, i)
        assert STATUS_CODES[codes[i]] is status
        assert seconds[i] == (makespan if status.ok else np.inf)


ELEMENTWISE, INPUT, OTHER = OpKind.ELEMENTWISE, OpKind.INPUT, OpKind.OTHER


def makespan(problem: Problem, device, priority=None, leader=None) -> float:
    seconds, _ = MakespanPricer(problem).price(decided(device, priority, leader))
    return float(seconds[0])


def test_out_of_memory_is_a_status_that_names_the_device():
    problem = step_problem([1.0, 2.0], [(0, 1, 8.0)], 2, weights=[0.0, 93.0], memory_bytes=100.0)
    pricer = MakespanPricer(problem)
    found = pricer.evaluate(decided([0, 1]))
    assert found.status is Status.OUT_OF_MEMORY
    assert found.seconds == np.inf
    assert found.peak_bytes.tolist() == [8.0, 101.0]
    assert found.detail == (
        "device 1 needs 101 bytes (93 of them weights); its memory is 100; the largest there at "
        "that moment: weights of 1 93, result of 0 8; the difference is result of 0: without "
        "its 8 bytes all would fit"
    )
    assert pricer.trace(decided([0, 1]))[1] == 11.0
    assert makespan(replace(problem, memory=False), [0, 1]) == 11.0
    assert makespan(step_problem([1.0], weights=[100.0], memory_bytes=100.0), [0]) == 1.0


def held_by_both(seed: int, fused: bool) -> Iterator[tuple[list, list, float]]:
    """What pricer and checker find on each device of a plan whose kernels all take time, and the
    peak."""
    made = random_step(seed, 10, memory_bytes=1e6)
    problem = replace(made, seconds=np.where(made.graph.is_fed, 0.0, np.maximum(made.seconds, 1.0)))
    problem = replace(problem, kernels=Summed(problem.seconds))
    device, priority, leader = random_plans(seed, problem, 1)
    pricer = MakespanPricer(problem)
    plans = Decisions(device, priority, leader if fused else None)
    status, _, trace = pricer.trace(plans)
    own = leader[0] if fused else np.arange(len(leader[0]))
    for where in range(problem.hardware.num_devices) if status.ok else ():
        plan = device[0].astype(np.int64), own
        mine = held_at_peak(problem.graph, pricer.arrays, plan, (pricer.jobs(plans), trace), where)
        theirs = makespan_value.held_at_peak(problem, device[0], priority[0], own, where)
        yield list(mine), theirs, float(trace.peak[where])


def test_what_pricer_and_checker_find_at_the_peak_adds_up_to_it():
    compared = 0
    for seed in range(50):
        for mine, theirs, peak_bytes in held_by_both(seed, fused=bool(seed % 2)):
            assert sum(size for _, size in mine) == pytest.approx(peak_bytes)
            assert sum(size for _, size in theirs) == pytest.approx(peak_bytes)
            if seed % 2 == 0:
                assert Counter(x for x in mine if x[1]) == Counter(x for x in theirs if x[1])
            compared += peak_bytes > 0
    assert compared > 60
