"""SAMPLE node by node: the exact conditional distribution, honest masks, always legal or given
up."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from reference.layered import layered_ring
from reference.random_rings import feasible
from reference.ring_rules import Partition
from reference.small_rings import broken, ring_problem

from go_rl.core import Problem, Status
from go_rl.core.evaluation import STATUS_CODES, Means
from go_rl.solvers import RingSolver

DRAWS = 3000


def one_after_the_other(
    log_probs: np.ndarray, blocks: np.ndarray, every: Sequence[Partition]
) -> dict[Partition, float]:
    """Probability of each legal partition where one block after the other draws its chip from its
    distribution, renormalised over the chips with a legal completion."""
    found: dict[Partition, float] = {}
    for plan in every:
        probability = 1.0
        for i, node in enumerate(blocks):
            before = blocks[:i]
            alike = [other for other in every if all(other[b] == plan[b] for b in before)]
            alive = {other[node] for other in alike}
            weights = {chip: float(np.exp(log_probs[node, chip])) for chip in alive}
            probability *= weights[plan[node]] / sum(weights.values())
        found[plan] = probability
    return found


def distributions(seed: int, problem: Problem) -> np.ndarray:
    shape = (problem.graph.num_nodes, problem.hardware.num_devices)
    return np.random.default_rng(seed).standard_normal(shape)


@pytest.mark.slow
@pytest.mark.usefixtures("unchecked_types")
def test_frequencies_are_those_of_the_exact_conditional():
    for seed, (problem, every) in enumerate(feasible(20, first=40, most=60, most_nodes=6)):
        solver, log_probs = RingSolver(problem), distributions(seed, problem)
        exact = one_after_the_other(log_probs, np.sort(solver.instance.leader), every)
        samples = solver.sample(log_probs, batch=DRAWS, seed=seed, nodewise=True)
        assert samples.ok.all()
        assert set(samples.means.tolist()) == {Means.TREE}
        drawn = Counter(tuple(row) for row in samples.device.tolist())
        assert set(drawn) <= set(exact)
        assert sum(exact.values()) == pytest.approx(1.0)
        apart = sum(abs(drawn[plan] / DRAWS - p) for plan, p in exact.items()) / 2
        assert apart < 1.5 * np.sqrt(len(exact) / (2 * np.pi * DRAWS)) + 0.01, seed


@pytest.mark.usefixtures("unchecked_types")
def test_log_prob_is_that_within_the_domains_and_mostly_exact():
    """A domain may hold chips without a legal completion: then the true probability is higher."""
    exactly = total = 0
    for seed, (problem, every) in enumerate(feasible(25, first=3000, most=60, most_nodes=6)):
        solver, log_probs = RingSolver(problem), distributions(seed, problem)
        exact = one_after_the_other(log_probs, np.sort(solver.instance.leader), every)
        samples = solver.sample(log_probs, batch=20, seed=seed, nodewise=True)
        for row, device in enumerate(samples.device.tolist()):
            truth = np.log(exact[tuple(device)])
            total += 1
            exactly += abs(samples.log_prob[row] - truth) < 1e-9
    assert exactly > 0.7 * total


def test_by_hand():
    """0 -> 1 on two chips, both used: chip 1 for node 0 leaves chip 0 empty."""
    problem = ring_problem(2, [(0, 1)], 2, all_chips=True)
    samples = RingSolver(problem).sample(np.zeros((2, 2)), batch=5, nodewise=True)
    assert samples.device.tolist() == [[0, 1]] * 5
    assert samples.log_prob.tolist() == [0.0] * 5


@pytest.mark.usefixtures("unchecked_types")
def test_larger_rings_have_legal_samples_or_give_up_and_seeds_are_obeyed():
    """Confident distributions may have no legal completion in reach of the strict rules."""
    for seed in range(12):
        rules = ("strict", "default", "relay", "replicate")[seed % 4]
        problem = layered_ring(seed, 60, (4, 8, 16)[seed % 3], rules)
        solver = RingSolver(problem)
        log_probs = 4 * distributions(seed, problem)
        first, again = (solver.sample(log_probs, 8, seed=seed, nodewise=True) for _ in range(2))
        assert first.ok.all() or rules == "strict"
        assert (first.ok | (first.status == STATUS_CODES.index(Status.GAVE_UP))).all()
        assert (first.device == again.device).all()
        for device in first.device[first.ok]:
            assert broken(problem, device) == ()
