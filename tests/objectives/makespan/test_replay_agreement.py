"""The compiled replay against its plain twin, the checker, Algorithm 2 of CDMPP, and what holds of
every schedule."""

from collections import Counter

import numpy as np
import pytest
from reference.replay import replay
from reference.step_problems import random_plans, random_step

from go_rl.core import Status
from go_rl.core.decisions import Decisions
from go_rl.core.evaluation import STATUS_CODES
from go_rl.objectives.makespan.simulate.pricing import MakespanPricer
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


def test_a_batch_is_priced_as_its_plans_one_by_one():
    problem = random_step(3)
    plans = Decisions(*random_plans(3, problem, 33))
    pricer = MakespanPricer(problem)
    seconds, codes = pricer.price(plans)
    for i in range(33):
        status, makespan, _ = pricer.trace(plans, i)
        assert STATUS_CODES[codes[i]] is status
        assert seconds[i] == (makespan if status.ok else np.inf)
