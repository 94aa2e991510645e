"""CP-SAT, and inputs that are unusual."""

from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest
from reference.random_rings import random_ring
from reference.ring_rules import copied_by, partitions
from reference.small_rings import broken, ring_problem

from go_rl.core import Means, Problem, SolverError, Status
from go_rl.solvers import RingSolver, Samples, ring_instance
from go_rl.solvers.replication import place_copies, replicas_of, replicated_nodes
from go_rl.solvers.stage_costs import stage_costs
from go_rl.solvers.twins.cp_sat import CpSatOptions, first_partition, optimise
from go_rl.verify.rules import legal
from go_rl.verify.value import ring_seconds

QUICK = CpSatOptions(seconds=20.0, workers=1)


def price(problem: Problem, device: np.ndarray) -> float:
    home, present = place_copies(problem, replicated_nodes(problem), device)
    return ring_seconds(problem, home.tolist(), replicas_of(home, present))


def least(problem: Problem) -> float:
    """The optimum by enumeration; inf without a partition."""
    found = partitions(problem, copied_by(replicated_nodes(problem)))
    return min((price(problem, np.array(d, np.int16)) for d in found), default=float("inf"))


@pytest.mark.usefixtures("unchecked_types")
def test_optimum_equals_brute_force():
    copied = 0
    for seed in range(50):
        problem = random_ring(seed, 5, 3)
        found, optimum = optimise(ring_instance(problem), QUICK), least(problem)
        if optimum == float("inf"):
            assert found.status is Status.INFEASIBLE, seed
            continue
        assert found.optimal, seed
        assert found.value == pytest.approx(optimum, rel=1e-6), seed
        assert found.bound <= optimum, seed
        assert found.bound >= optimum * (1 - 1e-6), seed
        assert found.value == pytest.approx(price(problem, found.device), rel=1e-12), seed
        copied += bool(replicated_nodes(problem).any())
    assert copied > 2


def least_of_all_plans(problem: Problem) -> float:
    """The optimum over every home and every set of copies that the checker accepts."""
    nodes, chips = problem.graph.num_nodes, problem.hardware.num_devices
    cheap = np.flatnonzero(problem.work <= 1e-3 * problem.work.sum()).tolist()
    sets = [s for size in range(chips) for s in combinations(range(chips), size)]
    best = float("inf")
    for home in product(range(chips), repeat=nodes):
        for copies in product(sets, repeat=len(cheap)):
            replicas = dict(zip(cheap, copies, strict=True))
            if any(home[n] in on for n, on in replicas.items()):
                continue
            if not legal(problem, np.array(home), replicas):
                best = min(best, ring_seconds(problem, list(home), replicas))
    return best


@pytest.mark.usefixtures("unchecked_types")
def test_bound_without_copies_holds_whatever_a_plan_copies():
    options = CpSatOptions(seconds=20.0, workers=1, copies=False)
    asked = tight = 0
    for seed in range(200):
        problem = random_ring(seed, 4, 2)
        if not problem.rules.replicate or (problem.work <= 1e-3 * problem.work.sum()).sum() != 1:
            continue
        found, optimum = optimise(ring_instance(problem), options), least_of_all_plans(problem)
        if np.isfinite(found.bound) and np.isfinite(optimum):
            asked += 1
            assert found.bound <= optimum * (1 + 1e-12), seed
            tight += found.bound >= optimum * (1 - 1e-6)
    assert asked > 7
    assert tight > asked / 2


def test_a_complete_hint_is_where_the_search_starts():
    problem = next(p for p in (random_ring(s, 7, 4) for s in range(50)) if least(p) < np.inf)
    instance, costs = ring_instance(problem), stage_costs(ring_instance(problem))
    start = first_partition(instance, 20.0, 1).device
    assert start is not None
    seen = []
    found = optimise(instance, QUICK, hint=start, log=lambda _, value: seen.append(value))
    first = costs.value(start[instance.leader])
    assert first == pytest.approx(price(problem, start), rel=1e-12)
    assert seen[0] <= first * (1 + 1e-9)
    assert seen == sorted(seen, reverse=True)
    assert [value for _, value in found.curve] == seen


def test_no_time_gives_up_with_a_bound():
    problem = ring_problem(40, [(n, n + 1) for n in range(39)], 8)
    found = optimise(ring_instance(problem), CpSatOptions(seconds=1e-9))
    assert found.status in (Status.GAVE_UP, Status.OK)
    assert found.bound == pytest.approx(5.0)


def test_a_hint_of_another_graph_is_refused():
    instance = ring_instance(ring_problem(3, [(0, 1)], 2))
    with pytest.raises(SolverError, match=r"shape \(4,\); the graph has 3 nodes"):
        optimise(instance, QUICK, hint=np.zeros(4, np.int16))


CHAIN = [(0, 1), (1, 2), (2, 3)]
INF = np.inf


def all_chips(problem: Problem) -> Problem:
    return replace(problem, all_chips=True)


PROBLEMS = {
    "one node, one chip": ring_problem(1, [], 1),
    "one node, 36 chips": ring_problem(1, [], 36),
    "no edges": ring_problem(5, [], 3),
    "no edges, every chip": all_chips(ring_problem(6, [], 3)),
    "one chip": ring_problem(4, CHAIN, 1),
    "more chips than nodes": ring_problem(4, CHAIN, 36),
    "as many chips as nodes, every chip": all_chips(ring_problem(4, CHAIN, 4)),
    "all pinned": ring_problem(4, CHAIN, 3, fixed={0: 0, 1: 1, 2: 1, 3: 2}),
    "pinned to the last chip": ring_problem(4, CHAIN, 4, fixed={3: 3}),
    "pinned apart": ring_problem(4, [(0, 1), (0, 2), (0, 3)], 3, fixed={3: 2}),
}
every_problem = pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS.keys())


def check(solver: RingSolver, samples: Samples) -> None:
    """All are legal, and their log-probabilities are numbers."""
    assert samples.ok.all()
    assert (samples.log_prob <= 1e-9).all()
    assert np.isfinite(samples.log_prob).all()
    for device in samples.device:
        assert broken(solver.problem, device) == ()


@every_problem
def test_any_distribution_gives_legal_samples(problem):
    solver, rng = RingSolver(problem), np.random.default_rng(0)
    shape = (problem.graph.num_nodes, problem.hardware.num_devices)
    odd = rng.standard_normal(shape)
    odd[-1] = -INF
    last = np.full(shape, -INF)
    last[:, -1] = 0.0
    first = np.where(np.arange(shape[1]) == 0, 0.0, np.full(shape, -INF))
    for log_probs in (
        None, np.zeros(shape), odd, last, first, np.full(shape, -INF), np.full(shape, -1e300),
        np.where(last < 0, -1e300, 1e300), odd.astype(np.float32), odd[:, ::-1],
    ):  # fmt: skip
        samples = solver.sample(log_probs, batch=4, seed=1)
        check(solver, samples)
        given = None if log_probs is None else np.asarray(log_probs, np.float64)
        for row in range(4):
            found = solver.fidelity(samples, row, log_probs=given)
            assert found.legalized_by is not Means.NONE
            assert (found.displacement is None) == (log_probs is None)


@every_problem
def test_any_proposal_is_repaired(problem):
    solver, nodes = RingSolver(problem), problem.graph.num_nodes
    chips = problem.hardware.num_devices
    for proposal in (
        np.full(nodes, -1), np.zeros(nodes, int), np.full(nodes, chips - 1),
        np.arange(nodes)[::-1] % chips,
    ):  # fmt: skip
        for log_probs in (None, np.full((nodes, chips), -INF)):
            samples = solver.fix(proposal, log_probs, seed=2)
            check(solver, samples)
            assert (solver.fidelity(samples, 0, proposal).displacement is None) == (
                (proposal == -1).all()
            )


def test_fix_keeps_near_where_every_chip_has_probability_zero():
    """Node 1 must not be after node 2: the nearest plans move one node by one chip."""
    solver = RingSolver(ring_problem(4, CHAIN, 2))
    proposal = np.array([0, 1, 0, 1])
    found = solver.fix(proposal, np.full((4, 2), -INF))
    assert solver.fidelity(found, 0, proposal).displacement == 0.25
