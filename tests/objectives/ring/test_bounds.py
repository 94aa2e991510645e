"""Proven bounds on the ring never exceed the best legal plan, whatever it copies."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from reference.random_rings import random_ring
from reference.ring_optimum import optimum
from reference.small_rings import ring_problem

from go_rl.core import Budget, Hardware, Links, Problem, Topology
from go_rl.objectives.methods import Exact, IdealDP
from go_rl.objectives.ring.bounds import ring_bound
from go_rl.solvers import ring_instance

pytestmark = pytest.mark.usefixtures("unchecked_types")

SLACK = 1 + 1e-9


def tiny(seed: int) -> Problem:
    """Up to five nodes on up to three chips; every fifth problem mixes two kinds of chips."""
    problem = random_ring(seed, 5, 3)
    if seed % 5 < 4:
        return problem
    rng = np.random.default_rng(seed)
    chips = [replace(c, kind=f"tile{rng.integers(2)}") for c in problem.hardware.devices]
    hardware = Hardware("mixed", tuple(chips), problem.hardware.links)
    seconds = rng.integers(0, 9, (len(hardware.kinds), problem.graph.num_nodes)).astype(np.float64)
    return replace(problem, hardware=hardware, seconds=seconds)


@pytest.mark.parametrize(
    "chunk", [0, *(pytest.param(i, marks=pytest.mark.slow) for i in (1, 2, 3))]
)
def test_bounds_hold_against_brute_force(chunk):
    """60 problems each, under all rules, with traffic, memory, pins, classes and free copies."""
    tight: Counter[str] = Counter()
    for seed in range(60 * chunk, 60 * chunk + 60):
        problem = tiny(seed)
        best = optimum(problem)
        assert best is not None
        instance = ring_instance(problem)
        quick = ring_bound(instance)
        plan = IdealDP().optimize(problem, Budget(samples=40), 0)
        for name, bound in (("quick", quick), ("ideal", plan.bound)):
            assert bound <= best * SLACK, (seed, name, bound, best)
            tight[name] += bool(np.isfinite(best) and bound >= 0.999 * best)
        if plan.evaluation.status.ok:
            assert plan.value * SLACK >= best, seed
            assert not plan.optimal or plan.value <= best * SLACK, seed
    assert min(tight["quick"], tight["ideal"]) > 8


def test_exact_bounds_hold_too():
    proved = 0
    for seed in range(24):
        problem = tiny(seed)
        plan = Exact(workers=1).optimize(problem, Budget(seconds=5.0), 0)
        best = optimum(problem)
        assert best is not None
        assert plan.bound <= best * SLACK, seed
        proved += plan.optimal
        assert not plan.optimal or plan.value <= best * (1 + 1e-6), seed
    assert proved > 4


def chain(work: list[float], chips: int, rules: str = "strict", **options) -> Problem:
    edges = [(i, i + 1) for i in range(len(work) - 1)]
    return ring_problem(len(work), edges, chips, rules, seconds=work, memory=False, **options)


def bound_of(problem: Problem) -> float:
    return ring_bound(ring_instance(problem))


def test_a_tensor_too_expensive_to_send_joins_its_ends():
    problem = replace(
        chain([3.0, 3.0, 3.0], 3),
        edge_bytes=np.array([100.0, 0.1]),
        hardware=replace(chain([1.0], 3).hardware, links=Links(Topology.RING, 1.0)),
    )
    assert bound_of(problem) == pytest.approx(6.0, rel=1e-5)


def test_latency_is_counted_once_a_link_not_once_a_tensor():
    """Two tensors leave node 0: 1 + 1 + latency 3 = 5 s on the link, not 8; work is 6 a chip."""
    problem = ring_problem(3, [(0, 1), (0, 2)], 2, "relay", seconds=[6.0, 3.0, 3.0], memory=False)
    problem = replace(
        problem,
        graph=replace(problem.graph, edge_output=np.array([0, 1], np.int32)),
        hardware=replace(problem.hardware, links=Links(Topology.RING, 1.0, 3.0)),
        edge_bytes=np.array([1.0, 1.0]),
    )
    assert optimum(problem) == 6.0
    plan = IdealDP().optimize(problem, Budget(samples=20), 0)
    assert (plan.value, plan.bound) == (6.0, 6.0)


def test_under_the_triangle_rule_an_edge_keeps_what_lies_between_on_two_chips():
    """0 -> 1 -> 2 -> 3 and 0 -> 3 of 2 s each: 8 s on two chips; without the rule 2 s each."""
    edges = [(0, 1), (1, 2), (2, 3), (0, 3)]
    strict, relay = (ring_problem(4, edges, 4, r, seconds=[2.0] * 4) for r in ("strict", "relay"))
    assert bound_of(strict) == pytest.approx(4.0)
    assert bound_of(relay) == pytest.approx(2.0)
    assert (optimum(strict), optimum(relay)) == (4.0, 2.0)


def test_no_work_has_no_bound():
    assert bound_of(chain([0.0, 0.0], 2)) == 0.0
    assert bound_of(chain([0.0, 0.0], 2, all_chips=True)) == 0.0


def test_a_node_that_no_chip_can_run_leaves_no_plan():
    assert bound_of(chain([1.0, np.inf], 2)) == np.inf
