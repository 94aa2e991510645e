"""The ring policy as published: free logits of chips, no reference orders, SAMPLE node by node."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from policy.tiny import TINY, chain, lattice

from go_rl.core import Budget, PolicyError, TrainingError
from go_rl.policy.agent import Agent, new_agent
from go_rl.policy.config import RingPolicyConfig
from go_rl.policy.learn.config import RingTrainConfig, SampleConfig
from go_rl.policy.learn.fine_tune import FineTuned
from go_rl.policy.policy_search import PolicySearch

PUBLISHED = replace(TINY, orders=False, prior=False)


def lively(config: RingPolicyConfig = PUBLISHED) -> Agent:
    """Random weights everywhere."""
    agent, rng = new_agent(config, 0), np.random.default_rng(1)
    moved = jax.tree.map(
        lambda x: x + jnp.asarray(0.3 * rng.standard_normal(x.shape), jnp.float32), agent.params
    )
    return agent.having(moved)


@pytest.mark.slow
def test_it_plans_and_learns():
    problem, budget = lattice(), Budget(samples=20)
    search = PolicySearch(lively(), "placement", "sample-nodes")
    assert search.optimize(problem, budget, 0).evaluation.status.ok
    learner = FineTuned(lively(), "placement", solver="sample-nodes", samples=40)
    plan, after = learner.learn(problem, budget, 0)
    assert plan.evaluation.status.ok
    assert not all(
        np.array_equal(a, b)
        for a, b in zip(
            jax.tree.leaves(after.params), jax.tree.leaves(lively().params), strict=True
        )
    )


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: RingPolicyConfig(orders=False), PolicyError, "set prior to false as well"),
        (
            lambda: RingTrainConfig(policy=PUBLISHED, samples=SampleConfig(4, 4)),
            TrainingError,
            "set samples.orders to 0",
        ),
        (
            lambda: PolicySearch(lively()).optimize(chain(), Budget(samples=2), 0),
            PolicyError,
            "draws placement, no order",
        ),
        (
            lambda: FineTuned(lively()).optimize(chain(), Budget(samples=2), 0),
            PolicyError,
            "draws placement, no order",
        ),
        (
            lambda: PolicySearch(solver="sample-node"),
            PolicyError,
            "solver must be one of .*sample-nodes",
        ),
    ],
)
def test_what_has_no_meaning_is_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()
