"""Exhaustive search: a plan wherever brute force finds one, else the proof that none exists."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from reference.boxed_problems import random_problem
from reference.host_objectives import latency, max_load, optimum
from reference.random_rings import random_ring
from reference.step_problems import step_problem

from go_rl.compare.portfolio.portfolio import run
from go_rl.core import Budget, Objective, Problem, Status
from go_rl.core.decisions import Decisions
from go_rl.objectives.common.all_assignments import MOST_ASSIGNMENTS
from go_rl.objectives.methods import Exhaustive, is_small
from go_rl.objectives.ring.simulate.pricing import RingPricer
from go_rl.objectives.ring.workspace import ring_workspace
from go_rl.verify.check_plan import check_plan
from go_rl.verify.rules import legal

FEW = Budget(samples=1)


def ring_optimum(problem: Problem) -> float:
    """Value of the best plan that the judge calls legal; inf without one."""
    devices, nodes = problem.hardware.num_devices, problem.graph.num_nodes
    rows = np.array(list(product(range(devices), repeat=nodes)), np.int16)
    seconds = ring_workspace(problem).evaluate(Decisions(rows)).seconds
    pricer = RingPricer(problem)
    for i in np.argsort(seconds, kind="stable"):
        if not np.isfinite(seconds[i]):
            break
        if not legal(problem, pricer.place(rows[i])[0], pricer.replicas(rows[i])):
            return float(seconds[i])
    return float("inf")


def tight_box(seed: int, objective: Objective) -> Problem:
    """Memories of 1 to 8 bytes."""
    rng = np.random.default_rng(seed)
    problem = random_problem(seed, objective, int(rng.integers(1, 6)), int(rng.integers(1, 4)))
    chips = tuple(
        chip if chip.is_cpu else replace(chip, memory_bytes=float(rng.integers(1, 9)))
        for chip in problem.hardware.devices
    )
    return replace(problem, hardware=replace(problem.hardware, devices=chips), memory=True)


def tight_ring(seed: int) -> Problem:
    """Live tensors, which the solver does not know of, fill the memory as much as weights do."""
    rng = np.random.default_rng([seed, 77])
    problem = random_ring(seed, 5, 3)
    size = rng.integers(0, 40, problem.graph.num_nodes).astype(np.float64)
    edges = rng.integers(0, 40, problem.graph.num_edges).astype(np.float64)
    room = float(rng.integers(20, 220))
    chips = tuple(replace(chip, memory_bytes=room) for chip in problem.hardware.devices)
    hardware = replace(problem.hardware, devices=chips)
    return replace(problem, output_bytes=size, edge_bytes=edges, hardware=hardware, memory=True)


@pytest.mark.parametrize(
    ("objective", "price"), [(Objective.MAX_LOAD, max_load), (Objective.LATENCY, latency)]
)
def test_boxes_are_decided_as_by_brute_force(objective, price):
    statuses = []
    for seed in range(24):
        problem = tight_box(seed, objective)
        plan = Exhaustive().optimize(problem, Budget(samples=10_000), seed)
        best = optimum(problem, price)
        assert plan.value == pytest.approx(best), seed
        assert check_plan(plan, problem).status is plan.evaluation.status
        assert plan.evaluation.status in (Status.OK, Status.INFEASIBLE)
        assert plan.optimal == np.isfinite(best)
        statuses.append(plan.evaluation.status)
    assert statuses.count(Status.OK) > 3
    assert statuses.count(Status.INFEASIBLE) > 3


def test_rings_short_of_room_for_live_tensors_are_decided_as_by_brute_force():
    found = []
    for seed in range(14):
        problem = tight_ring(seed)
        plan = Exhaustive().optimize(problem, Budget(samples=10_000), seed)
        assert check_plan(plan, problem).status is plan.evaluation.status
        assert plan.evaluation.status.ok or ring_optimum(problem) == np.inf, seed
        found.append(plan.evaluation.status)
    assert found.count(Status.OK) > 3
    assert Status.INFEASIBLE in found


@pytest.mark.slow
def test_auto_finds_the_plan_of_a_ring_that_its_methods_miss():
    """One sample of each method fails for want of memory; the proof or the plan costs one more."""
    statuses = [run(tight_ring(seed), budget=FEW, seed=seed).best for seed in range(6)]
    for seed, plan in enumerate(statuses):
        there_is = Exhaustive().optimize(tight_ring(seed), FEW, 0).evaluation.status.ok
        assert plan.evaluation.status.ok == there_is, seed


def test_two_results_that_fit_one_device_each_but_not_both_together():
    """Both results of 4 bytes stay to the end; a device has room for 7 bytes."""
    sizes = {"output_bytes": [4.0, 4.0], "is_output": [True, True], "memory_bytes": 7.0}
    decisions = ("placement", "schedule")
    apart = step_problem([1.0, 1.0], devices=2, decisions=decisions, **sizes)
    plan = Exhaustive().optimize(apart, FEW, 0)
    assert check_plan(plan, apart).ok
    assert sorted(plan.device.tolist()) == [0, 1]
    together = step_problem([1.0, 1.0], devices=1, decisions=decisions, **sizes)
    proof = Exhaustive().optimize(together, FEW, 0).evaluation
    assert (proof.status, proof.detail) == (
        Status.INFEASIBLE,
        "none of all 3 assignments keeps the rules and fits the memory",
    )


def test_large_problems_are_left_alone():
    assert is_small(random_problem(1, Objective.MAX_LOAD, 6, 4))
    large = random_problem(4, Objective.MAX_LOAD, 40, 4)
    assert not is_small(replace(large, memory=False, seconds=np.ones_like(large.seconds), fixed={}))
    assert MOST_ASSIGNMENTS < 4**40
