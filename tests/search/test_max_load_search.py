"""Max-load optimizers: legal on any mix, optimal on tiny problems, honest about failure."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.boxed_problems import random_devices, random_problem
from reference.max_load import max_load, optimum

from go_rl.core import Budget, Objective, SearchError, Status
from go_rl.objectives.host.hypergraph import contract_problem, device_loads
from go_rl.objectives.host.max_load_bounds import max_load_bound
from go_rl.objectives.host.max_load_greedy import greedy_max_load
from go_rl.search.host.coarsening import coarsen
from go_rl.search.host.local_search import LocalSearch
from go_rl.search.host.max_load_anneal import initial_state, move
from go_rl.search.host.max_load_dp import MaxLoadDP
from go_rl.simulate.host.max_load import evaluate_max_load
from go_rl.verify.check_plan import check_plan

BUDGET = Budget(samples=30_000)
"""Enough for the annealer to exhaust a six-node problem."""


def tiny(seed: int):
    return random_problem(seed, Objective.MAX_LOAD, 2 + seed % 5, 1 + seed % 3)


@pytest.mark.parametrize("seed", range(30))
def test_tiny_problems_are_solved_and_bounded(seed):
    problem = tiny(seed)
    best = optimum(problem, max_load)
    plan = LocalSearch().optimize(problem, BUDGET, 0)
    if np.isinf(best):
        assert plan.evaluation.status in (Status.INFEASIBLE, Status.GAVE_UP)
        assert plan.value == float("inf")
        return
    assert plan.evaluation.status is Status.OK
    assert plan.value == pytest.approx(best, rel=1e-9)
    assert max_load_bound(problem) <= best * (1 + 1e-9)
    assert plan.bound <= best * (1 + 1e-9)
    assert plan.curve[-1].seconds_per_step == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize("seed", range(40, 60))
def test_dp_and_greedy_are_legal_and_no_better_than_possible(seed):
    problem = tiny(seed)
    best = optimum(problem, max_load)
    plan = MaxLoadDP().optimize(problem, Budget(samples=50), 0)
    assert plan.samples <= 50
    if plan.evaluation.status is Status.OK:
        assert best - 1e-9 <= plan.value
        assert max_load(problem, plan.device)[0] == pytest.approx(plan.value)
    try:
        greedy = greedy_max_load(problem)
    except SearchError:
        return
    assert evaluate_max_load(problem, greedy).status is Status.OK


def test_dp_splits_a_chain_at_the_best_place():
    """Work 3, 3, 3, 3 and transfers 1, 9, 1: cutting in the middle costs 6 + 9, after one 9 + 1."""
    problem = chain((3.0, 3.0, 3.0, 3.0), (1.0, 9.0, 1.0, 1.0))
    plan = MaxLoadDP().optimize(problem, Budget(samples=4), 0)
    assert plan.value == 10.0
    assert sorted(np.bincount(plan.device)) == [1, 3]


def chain(work, transfer):
    from go_rl.core import Chip, Hardware, Links, OpKind, Topology
    from go_rl.readers.graph_builder import GraphBuilder, Node

    builder = GraphBuilder("chain")
    for n in range(len(work)):
        builder.add_node(Node(n, "Op", OpKind.OTHER))
        if n:
            builder.add_edge(n - 1, n, 1.0)
    tile = Chip("tile", 1.0, 10.0, 1.0)
    base = random_problem(0, Objective.MAX_LOAD, len(work), 1)
    return replace(
        base,
        graph=builder.build(),
        hardware=Hardware("two", (tile, tile), Links(Topology.FULL, 1.0)),
        seconds=np.array([work]),
        transfer_seconds=np.array(transfer),
        edge_bytes=np.zeros(len(work) - 1),
        memory=False,
        fixed={},
    )


def test_equal_seeds_and_samples_give_equal_plans():
    problem = random_problem(7, Objective.MAX_LOAD, 30, 4)
    one, two = (LocalSearch().optimize(problem, BUDGET, 3) for _ in range(2))
    assert (one.device == two.device).all()
    assert one.samples == two.samples <= 30_000


def test_one_sample_is_enough_for_a_plan():
    plan = LocalSearch().optimize(
        random_problem(4, Objective.MAX_LOAD, 12, 4), Budget(samples=1), 0
    )
    assert plan.samples == 1


def test_the_ring_is_refused():
    from go_rl.core import load_hardware

    assert LocalSearch().name == "local-search"
    problem = replace(tiny(0), hardware=load_hardware("ring4"), objective=Objective.RING, fixed={})
    with pytest.raises(SearchError, match="objective max-load or latency"):
        LocalSearch().optimize(problem, BUDGET, 0)


@given(st.integers(0, 10_000))
@settings(max_examples=30, deadline=None)
def test_moves_keep_loads_exact(seed):
    problem = random_problem(seed, Objective.MAX_LOAD, 2 + seed % 12, 1 + seed % 4)
    contraction = contract_problem(problem)
    hypergraph, devices = contraction.hypergraph, contraction.devices
    hypergraph = hypergraph._replace(work=np.minimum(hypergraph.work, 1e3))
    rng = np.random.default_rng(seed)
    device = random_devices(seed, problem, 1)[0][: len(hypergraph.size)].copy()
    state = initial_state(hypergraph, devices, device)
    for _ in range(20):
        move(hypergraph, devices, state, rng.integers(len(device)), rng.integers(len(devices.kind)))
    assert state.loads == pytest.approx(device_loads(hypergraph, devices, device), abs=1e-9)
    assert state.held == pytest.approx(np.bincount(device, hypergraph.size, len(devices.kind)))


@given(st.integers(0, 10_000))
@settings(max_examples=20, deadline=None)
def test_coarse_levels_have_the_loads_of_the_fine_one(seed):
    problem = random_problem(seed, Objective.MAX_LOAD, 30 + seed % 20, 1 + seed % 4)
    contraction = contract_problem(problem)
    devices, fine = contraction.devices, contraction.hypergraph
    fine = fine._replace(work=np.minimum(fine.work, 1e3))
    rng = np.random.default_rng(seed)
    device = rng.integers(len(devices.kind), size=len(fine.size)).astype(np.int16)
    expected = device_loads(fine, devices, device)
    for graph, cluster in coarsen(fine, device, rng):
        coarse = np.empty(graph.work.shape[1], np.int16)
        coarse[cluster] = device
        assert (coarse[cluster] == device).all()
        device = coarse
        assert device_loads(graph, devices, device) == pytest.approx(expected)


def test_plans_pass_the_independent_checker():
    problem = random_problem(11, Objective.MAX_LOAD, 20, 3)
    plan = LocalSearch().optimize(problem, BUDGET, 0)
    assert plan.evaluation.status is Status.OK
    check_plan(plan, problem)
