"""What a session prints of graphs, problems, plans and results: a line, however large they are."""

from dataclasses import replace

import numpy as np
import pytest
from reference.small_rings import ring_problem

from go_rl.compare.portfolio import Result
from go_rl.core import Evaluation, Plan, Problem, Status, plan_for

SIZE = 400


@pytest.fixture(scope="module")
def problem() -> Problem:
    """A chain of many nodes of a second each on two chips."""
    return ring_problem(SIZE, [(i, i + 1) for i in range(SIZE - 1)], 2)


def plan(problem: Problem, seconds: float) -> Plan:
    zeros = np.zeros(2)
    return plan_for(
        problem, device=np.arange(SIZE, dtype=np.int16) // (SIZE // 2), replicas={},
        evaluation=Evaluation(Status.OK, seconds, zeros, zeros, zeros, zeros, zeros, zeros),
        bound=200.0, optimizer="dp", seed=0, samples=7, wall_seconds=0.5,
    )  # fmt: skip


def test_a_graph_and_a_problem(problem):
    assert repr(problem.graph) == "<OpGraph 'small': 400 nodes, 399 edges, 4e-07 GFLOP>"
    assert repr(problem) == (
        "<Problem 'small' (400 nodes) on 'tiny-ring': objective ring, rules strict, cost profiled>"
    )


def test_a_profile_has_no_work(problem):
    graph = replace(problem.graph, flops=np.zeros(SIZE))
    assert repr(graph) == "<OpGraph 'small': 400 nodes, 399 edges, profiled>"


def test_a_plan_and_a_result(problem):
    heuristic, best = plan(problem, 250.0), plan(problem, 200.0)
    assert repr(heuristic) == (
        "<Plan by 'dp', ring on 'tiny-ring': 400 nodes on 2 devices, 250 s an iteration, "
        "gap 25 %, ok>"
    )
    assert repr(Result(problem, (heuristic, best), best, 200.0)) == (
        "<Result of 2 plans, 1.250 times the throughput of dp; best: <Plan by 'dp', ring on "
        "'tiny-ring': 400 nodes on 2 devices, 200 s an iteration, gap 0 %, ok>>"
    )
