"""The clipped surrogate, the update, and what it refuses."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from policy.learn.toys import CONFIG, PPO
from policy.tiny import lattice, tiny_agent

from go_rl.core import TrainingError
from go_rl.policy.agent import Agent
from go_rl.policy.learn.collect import Collected, Credit, TrainingCase, collect
from go_rl.policy.learn.ppo import Learner, judge, new_learner, surrogate, update
from go_rl.policy.ring.ring_plans import RingPlans


class Setting(NamedTuple):
    agent: Agent
    case: TrainingCase
    learner: Learner
    found: Collected


@pytest.fixture(scope="module")
def setting() -> Setting:
    """One batch of one small problem."""
    agent, case = tiny_agent(), TrainingCase("lattice", RingPlans(lattice(1, rules="relay")))
    found = collect(agent, case, CONFIG.sizes, Credit(), 0)
    return Setting(agent, case, new_learner(agent.params, PPO), found)


@pytest.mark.parametrize(
    ("ratio", "advantage", "expected", "clipped"),
    [
        (1.1, 2.0, 2.2, 0.0),
        (1.5, 2.0, 2.4, 1.0),
        (0.5, 2.0, 1.0, 1.0),
        (1.1, -2.0, -2.2, 0.0),
        (1.5, -2.0, -3.0, 1.0),
        (0.5, -2.0, -1.6, 1.0),
    ],
)
def test_the_surrogate_by_hand(ratio, advantage, expected, clipped):
    """min(r A, clip(r, 0.8, 1.2) A)."""
    log_ratio, gain = jnp.log(jnp.array([ratio])), jnp.array([advantage])
    value, share = surrogate(log_ratio, gain, jnp.ones(1), 0.2)
    assert float(value) == pytest.approx(expected, rel=1e-5)
    assert float(share) == clipped


@pytest.mark.parametrize(("ratio", "advantage", "moves"), [
    (1.5, 1.0, False), (0.5, 1.0, True), (1.5, -1.0, True), (0.5, -1.0, False), (1.1, 1.0, True),
])  # fmt: skip
def test_no_gradient_where_the_ratio_has_gone_far_enough(ratio, advantage, moves):
    def value(log_ratio):
        return surrogate(log_ratio, jnp.array([advantage]), jnp.ones(1), 0.2)[0]

    slope = float(jax.grad(value)(jnp.log(jnp.array([ratio])))[0])
    assert slope == pytest.approx(ratio * advantage if moves else 0.0, rel=1e-5)


def test_an_update_favours_what_earned_more(setting):
    """Sample 0 earned most: its decisions become likelier against the others'."""
    gain = jnp.array([3.0, -1.0, -1.0, -1.0])
    batch = setting.found.batch
    groups = {name: group._replace(advantage=gain) for name, group in batch.groups.items()}
    batch = batch._replace(groups=groups)
    policy = setting.agent.policy
    before = judge(policy, setting.learner.params, batch)
    learner, metrics = update(policy, PPO, setting.learner, [batch])
    after = judge(policy, learner.params, batch)
    was, now = (found["placement"]["placement"][0].parts(batch.real) for found in (before, after))
    moved = sum(
        np.asarray((log_prob - old) * weight).reshape(4, -1).sum(1)
        for (log_prob, weight), (old, _) in zip(now, was, strict=True)
    )
    assert moved[0] > moved[1:].mean()
    assert float(metrics.gradient_norm) > 0


def test_a_gain_that_is_no_number_is_refused_and_nothing_is_learnt(setting):
    group = setting.found.batch.groups["placement"]
    groups = {"placement": group._replace(advantage=group.advantage.at[1].set(jnp.nan))}
    batch = setting.found.batch._replace(groups=groups)
    before = jax.tree.map(np.array, setting.learner.params)
    with pytest.raises(TrainingError, match=r"gradient norm nan; lower ppo\.learning_rate"):
        update(setting.agent.policy, PPO, setting.learner, [batch])
    same = jax.tree.map(lambda a, b: bool((a == b).all()), before, setting.learner.params)
    assert all(jax.tree.leaves(same))


@pytest.mark.parametrize("reward", [np.nan, np.inf, -np.inf])
def test_a_reward_that_is_not_finite_stops_training(setting, monkeypatch, reward):
    case = TrainingCase("odd", setting.case.decoder)
    inner = RingPlans._rollouts

    def spoiled(self, priced, drawn=None):
        found = inner(self, priced, drawn)
        found.reward[2] = reward
        return found

    monkeypatch.setattr(RingPlans, "_rollouts", spoiled)
    with pytest.raises(TrainingError, match=f"case 'odd': a sample of 'placement' earned {reward}"):
        collect(setting.agent, case, CONFIG.sizes, Credit(), 0)
