"""Latency optimizers: legal on any mix, optimal on tiny problems, honest about failure."""

from dataclasses import replace

import numpy as np
import pytest
from reference.boxed_problems import random_problem
from reference.latency import latency
from reference.max_load import optimum

from go_rl.core import (
    Budget,
    Chip,
    Hardware,
    Links,
    Objective,
    OpKind,
    SearchError,
    Status,
    Topology,
)
from go_rl.objectives.host.latency_bounds import latency_bound
from go_rl.objectives.host.latency_greedy import greedy_latency
from go_rl.readers.graph_builder import GraphBuilder, Node
from go_rl.search.host.local_search import LocalSearch
from go_rl.verify.check_plan import check_plan

BUDGET = Budget(samples=20_000)


def tiny(seed: int):
    return random_problem(seed, Objective.LATENCY, 2 + seed % 5, 1 + seed % 3)


@pytest.mark.parametrize("seed", range(30))
def test_tiny_problems_are_solved_and_bounded(seed):
    problem = tiny(seed)
    best = optimum(problem, latency)
    plan = LocalSearch().optimize(problem, BUDGET, 0)
    if np.isinf(best):
        assert plan.evaluation.status in (Status.INFEASIBLE, Status.GAVE_UP)
        return
    assert plan.evaluation.status is Status.OK
    assert plan.value == pytest.approx(best, rel=1e-9)
    assert latency_bound(problem) <= best * (1 + 1e-9)
    check_plan(plan, problem)


@pytest.mark.parametrize("seed", range(40, 70))
def test_greedy_is_legal_where_it_finds_room(seed):
    problem = tiny(seed)
    try:
        device = greedy_latency(problem)
    except SearchError:
        return
    value, status = latency(problem, device)
    assert status is Status.OK
    assert value >= latency_bound(problem) - 1e-9


def test_greedy_does_not_come_back_to_an_accelerator_that_holds_nodes_without_bytes():
    """A chain: the first fits anywhere, the second needs the CPU, the third finds the accelerator
    left, though nothing of its memory is taken."""
    builder = GraphBuilder("chain")
    for n in range(3):
        builder.add_node(Node(n, "Op", OpKind.OTHER))
    for n in range(2):
        builder.add_edge(n, n + 1, 1.0)
    chips = Chip("fast", 1e12, 10.0, 1e12), Chip("cpu", 1e11, 10.0, 1e11, is_cpu=True)
    problem = replace(
        random_problem(0, Objective.LATENCY, 3, 2),
        graph=builder.build(),
        hardware=Hardware("pair", chips, Links(Topology.FULL, 1.0)),
        seconds=np.array([[1.0, np.inf, 1.0], [9.0, 9.0, 9.0]]),
        weight_bytes=np.array([0.0, 1.0, 1.0]),
        edge_bytes=np.ones(2),
        memory=True,
        fixed={},
    )
    assert greedy_latency(problem).tolist() == [0, 1, 1]


def test_greedy_finds_room_on_most_problems():
    found = 0
    for seed in range(40, 70):
        try:
            greedy_latency(tiny(seed))
        except SearchError:
            continue
        found += 1
    assert found >= 10


def test_equal_seeds_and_samples_give_equal_plans():
    problem = random_problem(9, Objective.LATENCY, 25, 4)
    one, two = (LocalSearch().optimize(problem, BUDGET, 3) for _ in range(2))
    assert (one.device == two.device).all()
    assert one.samples == two.samples <= 20_000
