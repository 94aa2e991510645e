"""Proven bounds on the ring never exceed the best legal plan, whatever it copies."""

from dataclasses import replace

import numpy as np
import pytest
from reference.ring_optimum import optimum
from reference.small_rings import ring_problem

from go_rl.core import Budget, Links, Problem, Topology
from go_rl.objectives.methods import IdealDP
from go_rl.objectives.ring.bounds import ring_bound
from go_rl.solvers import ring_instance

pytestmark = pytest.mark.usefixtures("unchecked_types")


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
