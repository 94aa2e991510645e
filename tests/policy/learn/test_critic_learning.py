"""The critic: what it is told, what it learns, and what a policy then draws."""

from __future__ import annotations

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from policy.tiny import tiny_makespan_agent, two_chains
from rounding import assert_rounded_alike

from go_rl.policy.agent import Agent
from go_rl.policy.critic import decision_features
from go_rl.policy.learn.config import CriticConfig
from go_rl.policy.learn.critic.learning import Experience, experience, with_critic
from go_rl.policy.learn.critic.searches import Search
from go_rl.policy.network import Policy

LEARN = CriticConfig(steps=200, problems=4, decisions=32)
JUDGED = 20
"""The graph-level number of placement that counts in these tests."""


def draws(agent: Agent, count: int = 400) -> np.ndarray:
    """[count, G] graph-level decisions of placement."""
    padded = two_chains().padded
    encoded = agent.encode(padded)
    noise = np.ones(count, np.float32)
    drawn = agent.draw(padded, encoded, ("placement",), jax.random.key(0), noise)
    return np.asarray(drawn["placement"].mix)


def told(sign: float, seed: int, decisions: int = 64) -> Experience:
    """On graphs of one sort a large number is bad, on those of the other it is good."""
    rng = np.random.default_rng(seed)
    width = tiny_makespan_agent().policy.decision_widths["placement"]
    mix = rng.standard_normal((decisions, width)).astype(np.float32)
    known = np.asarray(tiny_makespan_agent().encode(two_chains().padded).known).copy()
    known[0] = sign + 0.1 * rng.standard_normal()
    score = (sign * mix[:, JUDGED]).astype(np.float32)
    return Experience(known.astype(np.float32), {"placement": mix}, score)


@cache
def taught() -> Agent:
    lessons = [told(1.0 if i % 2 else -1.0, i) for i in range(24)]
    return with_critic(tiny_makespan_agent(), lessons, LEARN, 0)[0]


def scores(agent: Agent, one: Experience) -> np.ndarray:
    """[S] of a problem's decisions."""
    known, mixes = jax.tree.map(jnp.asarray, (one.known, one.mixes))
    found = agent.policy.apply(agent.params, known, mixes, method=Policy.criticise)
    return np.asarray(found).mean(0)


def test_features_are_shares_of_what_is_mixed_and_plain_numbers():
    mix = jnp.array([[0.0, 0.0, 2.0, np.log(3.0), 0.0]])
    found = np.asarray(decision_features(mix, orders=2, logits=2))
    assert_rounded_alike(found, [[0.5, 0.5, 2.0, np.tanh(6.0), 0.75, 0.25]])
    found = np.asarray(decision_features(mix[:, :3], orders=2, logits=0))
    assert_rounded_alike(found, [[0.5, 0.5, 2.0, np.tanh(6.0)]])


def test_an_untrained_critic_has_no_opinion():
    assert not scores(tiny_makespan_agent(), told(1.0, 99)).any()
    assert abs(draws(tiny_makespan_agent())[:, JUDGED].mean()) < 0.2


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_what_is_good_depends_on_the_graph(sign):
    unseen = told(sign, 1234)
    assert np.corrcoef(scores(taught(), unseen), unseen.score)[0, 1] > 0.8


def test_a_policy_draws_what_its_critic_likes():
    """Of eight standard normal draws the best has mean -1.42."""
    agent = taught()
    known = np.asarray(agent.encode(two_chains().padded).known)
    likes = scores(
        agent,
        Experience(known, {"placement": draws(tiny_makespan_agent())}, np.zeros(400, np.float32)),
    )
    preferred = np.corrcoef(likes, draws(tiny_makespan_agent())[:, JUDGED])[0, 1]
    chosen = draws(agent)[:, JUDGED].mean()
    assert abs(chosen) > 0.5
    assert np.sign(chosen) == -np.sign(preferred)


def test_only_the_critic_learns():
    before, after = tiny_makespan_agent().params["params"], taught().params["params"]
    for name in before:
        if name != "critic":
            jax.tree.map(np.testing.assert_array_equal, before[name], after[name])


def search_of(reward: list[float]) -> Search:
    return Search({"placement": np.zeros((len(reward), 3), np.float32)}, np.array(reward))


def test_scores_are_standard_deviations_of_log_seconds():
    """Rewards are minus roots of seconds: log seconds 0, 2, 0, 2, and one plan that cannot run."""
    one = experience(np.zeros(3, np.float32), search_of([-1.0, -np.e, -1.0, -np.e, -10.0]))
    assert one is not None
    assert_rounded_alike(one.score, [-1.0, 1.0, -1.0, 1.0, 3.0])


@pytest.mark.parametrize("reward", [[-1.0, -1.0, -10.0], [-10.0, -10.0]])
def test_a_problem_whose_plans_are_all_as_good_teaches_nothing(reward):
    assert experience(np.zeros(3, np.float32), search_of(reward)) is None
