"""Sampling under constraints: against enumeration, and the distributions of cuts."""

import numpy as np
import pytest
from reference.cuts import cut_log_probs, legal_cuts
from reference.random_rings import random_ring as drawn_ring
from reference.small_rings import legal_plans, random_ring, ring_problem

from go_rl.core import OpKind, SolverError, Status
from go_rl.core.evaluation import STATUS_CODES
from go_rl.core.graph.list_order import list_order
from go_rl.solvers import (
    AtMostPerChip,
    CustomConstraint,
    DifferentChips,
    ring_instance,
    sample_with_constraints,
)
from go_rl.solvers.draws.cut_distribution import CutDistribution
from go_rl.solvers.enumeration import explain_partition
from go_rl.solvers.network import Network
from go_rl.verify.rules import legal

CHAIN_OF_THREE = [(0, 1), (1, 2)]


def devices(*chips: int) -> np.ndarray:
    return np.array(chips, np.int16)


def test_partitions_of_a_chain_are_counted():
    """Three nodes on two chips, in order, chip 0 first: 000, 001, 011."""
    found = explain_partition(ring_problem(3, CHAIN_OF_THREE, 2), devices(0, 1, 1))
    assert (found.partitions, found.moves, found.blamed) == (3, {}, ())


def test_the_nearest_partition_moves_the_fewest_nodes():
    found = explain_partition(ring_problem(3, CHAIN_OF_THREE, 2), devices(0, 1, 0))
    assert found.partitions == 3
    assert found.moves in ({1: 0}, {2: 1})


def test_the_rule_that_forbids_every_partition_is_blamed():
    """The last node of a chain is pinned to the first chip, the first node to the second one."""
    problem = ring_problem(3, CHAIN_OF_THREE, 2, fixed={0: 1, 2: 0})
    found = explain_partition(problem, devices(0, 0, 0))
    assert found.partitions == 0
    assert set(found.blamed) == {"fixed", "acyclic"}


def test_a_large_problem_is_refused_with_its_size():
    problem = ring_problem(600, [(i, i + 1) for i in range(599)], 4)
    with pytest.raises(SolverError, match=r"10\^361 assignments of 600 nodes to 4 chips are too"):
        explain_partition(problem, devices(*[0] * 600))


CHAIN = [(n, n + 1) for n in range(7)]


class Forbid:
    """One particular plan is not wanted; notices it only when every node is placed."""

    def __init__(self, plan):
        self.plan = plan

    def prune(self, view):
        domains = view.domains()
        if (domains.sum(axis=1) == 1).all() and (domains.argmax(axis=1) == self.plan).all():
            yield 0, int(self.plan[0])


def _statuses(samples) -> set[Status]:
    return {STATUS_CODES[code] for code in samples.status}


def test_at_most_three_convolutions_on_a_chip():
    kinds = [OpKind.CONVOLUTION if n % 2 else OpKind.OTHER for n in range(8)]
    problem = ring_problem(8, CHAIN, 3, kinds=kinds)
    convolutions = np.flatnonzero(problem.graph.kind == OpKind.CONVOLUTION)
    samples = sample_with_constraints(problem, [AtMostPerChip(convolutions, 3)], batch=40, seed=3)
    assert samples.ok.all()
    most = [np.bincount(row[convolutions]).max() for row in samples.device]
    assert max(most) == 3
    assert not any(legal(problem, row, {}) for row in samples.device)


def test_two_nodes_on_different_chips_where_one_chip_is_wanted():
    problem = ring_problem(8, CHAIN, 3)
    log_probs = np.full((8, 3), -np.inf)
    log_probs[:, 0] = 0.0
    assert not sample_with_constraints(problem, [], log_probs).device.any()
    apart = sample_with_constraints(problem, [DifferentChips(2, 6)], log_probs, batch=5)
    assert apart.ok.all()
    assert (apart.device[:, 2] != apart.device[:, 6]).all()


@pytest.mark.parametrize("seed", range(10))
def test_verdict_equals_brute_force(seed):
    problem = random_ring(seed)
    rng = np.random.default_rng(seed)
    one, other = rng.choice(problem.graph.num_nodes, 2, replace=False).tolist()
    plans = legal_plans(problem)
    kept = [
        plan.tolist() for plan in plans if plan[one] != plan[other] and np.bincount(plan).max() <= 3
    ]
    rules = [DifferentChips(one, other), AtMostPerChip(np.arange(problem.graph.num_nodes), 3)]
    samples = sample_with_constraints(problem, rules, batch=4, seed=seed)
    assert samples.ok.all() == bool(kept)
    assert all(row.tolist() in kept for row in samples.device[samples.ok])
    if not kept:
        assert _statuses(samples) == {Status.INFEASIBLE}
        assert samples.detail


def test_a_constraint_that_looks_only_at_complete_plans_is_kept():
    """Two nodes in a row on two chips have the plans 00 and 01; one is forbidden."""
    problem = ring_problem(2, [(0, 1)], 2)
    samples = sample_with_constraints(problem, [Forbid([0, 1])], batch=20)
    assert samples.ok.all()
    assert not samples.device.any()
    nothing = sample_with_constraints(problem, [Forbid([0, 1]), Forbid([0, 0])], batch=3)
    assert _statuses(nothing) == {Status.INFEASIBLE}
    assert nothing.detail == "constraint Forbid: no chip is left for node 0"


@pytest.mark.parametrize(
    ("misuse", "sentence"),
    [
        (lambda: AtMostPerChip([0], -1), "limit must be >= 0"),
        (lambda: DifferentChips(2, 2), "node 2 is named twice"),
        (lambda: _sample([DifferentChips(0, 9)]), "node 9 is not one of 0..1"),
        (lambda: _sample([], log_probs=np.zeros((3, 2))), "log_probs must be"),
        (lambda: _sample([], log_probs=np.full((2, 2), np.nan)), "must not hold NaN"),
        (lambda: _sample([], batch=0), "batch must be >= 1"),
    ],
)
def test_misuse(misuse, sentence):
    with pytest.raises(SolverError, match=sentence):
        misuse()


def _sample(rules: list[CustomConstraint], **options):
    return sample_with_constraints(ring_problem(2, [(0, 1)], 2), rules, **options)


def networks(count: int, first: int = 0) -> list[tuple[int, Network]]:
    """Networks of small random problems, with all combinations of rules and memory."""
    made = [(seed, ring_instance(drawn_ring(seed)).net) for seed in range(first, first + count)]
    return [(seed, net) for seed, net in made if len(net.weight)]


def some_order(net: Network, rng: np.random.Generator) -> np.ndarray:
    return list_order(net.pred_ptr, net.succ_ptr, net.succ, rng.random(len(net.weight)))


def log_probs_of(net: Network, rng: np.random.Generator) -> np.ndarray:
    return 3.0 * rng.standard_normal((len(net.weight), net.chips))


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize("domains", ["all chips", "at the root"])
def test_the_mass_of_all_cuts_equals_enumeration(domains):
    without = 0
    for seed, net in networks(150):
        rng = np.random.default_rng(seed)
        order, log_probs = some_order(net, rng), log_probs_of(net, rng)
        everything = np.full(len(order), (1 << net.chips) - 1)
        domain = net.start if domains == "at the root" else everything
        every = cut_log_probs(net, order, log_probs, domain)
        found = CutDistribution(net, order, domain, log_probs).log_partition
        best = CutDistribution(net, order, domain, log_probs, best=True).log_partition
        if len(every):
            assert found == pytest.approx(np.logaddexp.reduce(every), abs=1e-9), seed
            assert best == pytest.approx(every.max(), abs=1e-9), seed
        else:
            assert found == best == -np.inf, seed
            without += 1
    assert 5 < without < 100


@pytest.mark.slow
@pytest.mark.usefixtures("unchecked_types")
def test_draws_follow_the_product_of_the_distributions():
    """Chi-squared over all cuts, and the log-probability that each draw claims."""
    random = np.array([1], np.uint64)
    checked = 0
    for seed, net in networks(60, first=300):
        rng = np.random.default_rng(seed)
        order, log_probs = some_order(net, rng), 0.3 * log_probs_of(net, rng)
        every = [tuple(chip.tolist()) for chip in legal_cuts(net, order, net.start)]
        if not 2 <= len(every) <= 12:
            continue
        mass = cut_log_probs(net, order, log_probs, net.start)
        expected = dict(zip(every, np.exp(mass - np.logaddexp.reduce(mass)), strict=True))
        cuts = CutDistribution(net, order, net.start, log_probs)
        chip, seen = np.zeros(len(order), np.int16), dict.fromkeys(every, 0)
        for _ in range(2_000):
            claimed = cuts.draw(random, chip)
            drawn = tuple(chip.tolist())
            seen[drawn] += 1
            assert claimed == pytest.approx(np.log(expected[drawn]), abs=1e-9)
        for chips, times in seen.items():
            mean = 2_000 * expected[chips]
            assert abs(times - mean) <= 5 * np.sqrt(mean) + 1, (seed, chips)
        checked += 1
    assert checked > 10


def test_probability_zero_everywhere_is_drawn_where_it_must_be():
    """Two blocks of a chain on all of two chips: 0 then 1, though block 0 never wants chip 0."""
    net = ring_instance(ring_problem(2, [(0, 1)], 2, all_chips=True)).net
    log_probs = np.array([[-np.inf, 0.0], [0.0, 0.0]])
    cuts = CutDistribution(net, np.arange(2), np.full(2, 3), log_probs)
    chip = np.zeros(2, np.int16)
    assert cuts.draw(np.array([5], np.uint64), chip) == pytest.approx(0.0)
    assert chip.tolist() == [0, 1]
