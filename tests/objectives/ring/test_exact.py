"""Exact: the optimum of small rings with a proof, judged independently."""

import numpy as np
import pytest
from reference.random_rings import random_ring
from reference.ring_rules import copied_by, partitions
from reference.small_rings import ring_problem

from go_rl.core import Budget, Optimizer, Status
from go_rl.objectives.ring.methods.exact import Exact
from go_rl.objectives.ring.simulate.pricing import RingPricer
from go_rl.verify.check_plan import check_plan


def test_exact_finds_and_proves_the_optimum():
    proved = 0
    for seed in range(40):
        problem = random_ring(seed, 5, 3)
        pricer = RingPricer(problem)
        legal_ones = list(partitions(problem, copied_by(pricer.replicated)))
        if problem.memory or not legal_ones:
            continue
        values, _ = pricer.price(np.array(legal_ones, np.int16))
        plan = Exact(workers=1).optimize(problem, Budget(seconds=10.0), seed)
        assert plan.value == pytest.approx(values.min(), rel=1e-6), seed
        assert check_plan(plan, problem).ok, seed
        proved += plan.optimal
    assert proved > 5


def test_exact_says_that_nothing_exists():
    problem = ring_problem(3, [(0, 1), (1, 2)], 2, fixed={1: 1, 2: 0})
    plan = Exact().optimize(problem, Budget(seconds=5.0), 0)
    assert plan.evaluation.status is Status.INFEASIBLE
    assert isinstance(Exact(), Optimizer)


@pytest.mark.parametrize("work", [0.02, 0.2])
def test_with_samples_alone_it_repeats_whatever_the_clock_says(monkeypatch, work):
    monkeypatch.setattr("go_rl.objectives.ring.methods.exact.WORK_SECONDS", work)
    problem = random_ring(3, 40, 4)

    def found():
        plan = Exact(workers=2).optimize(problem, Budget(samples=8), 1)
        return plan.value, plan.bound, plan.device.tolist(), plan.optimal

    assert found() == found()
