"""The ring policy as published: free logits of chips, SAMPLE node by node."""

import jax
import numpy as np
import pytest
from policy.tiny import lattice, lively_agent

from go_rl.core import Budget, PolicyError
from go_rl.policy.learn.fine_tune import FineTuned
from go_rl.policy.policy_search import PolicySearch


@pytest.mark.slow
def test_it_plans_and_learns():
    problem, budget = lattice(), Budget(samples=20)
    search = PolicySearch(lively_agent(), "sample-nodes")
    assert search.optimize(problem, budget, 0).evaluation.status.ok
    learner = FineTuned(lively_agent(), solver="sample-nodes", samples=40)
    plan, after = learner.learn(problem, budget, 0)
    assert plan.evaluation.status.ok
    assert not all(
        np.array_equal(a, b)
        for a, b in zip(
            jax.tree.leaves(after.params), jax.tree.leaves(lively_agent().params), strict=True
        )
    )


def test_an_unknown_solver_mode_is_named():
    with pytest.raises(PolicyError, match=r"solver must be one of .*sample-nodes"):
        PolicySearch(solver="sample-node")
