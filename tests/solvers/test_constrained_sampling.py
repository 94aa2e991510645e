"""Constraints written in Python, against brute force over the legal plans."""

import numpy as np
import pytest
from reference.small_rings import legal_plans, random_ring, ring_problem

from go_rl.core import OpKind, SolverError, Status
from go_rl.core.evaluation import STATUS_CODES
from go_rl.solvers import (
    AtMostPerChip,
    CustomConstraint,
    DifferentChips,
    sample_with_constraints,
)
from go_rl.verify.rules import legal

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
