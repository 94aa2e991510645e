"""The order task's distribution."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from policy.tiny import TINY, lively_agent, small_padded
from scipy.stats import norm

from go_rl.policy.agent import draw
from go_rl.policy.network import Policy, head_input
from go_rl.policy.ring.order_decoder import OrderDecoder
from go_rl.policy.ring.ring_policy import RingPolicy

KEY = jax.random.key(7)
UNITS = 24


def orders(agent, padded, encoded, noise):
    """Orders of an agent."""
    return agent.draw(padded, encoded, ("order",), KEY, noise)["order"]


@pytest.fixture(scope="module")
def drawn():
    """A graph, its encoding and four orders, the last without noise."""
    agent, padded = lively_agent(), small_padded(0, UNITS)
    encoded = agent.encode(padded)
    noise = np.array([1.0, 1.0, 0.5, 0.0], np.float32)
    return agent, padded, encoded, orders(agent, padded, encoded, noise)


@pytest.fixture(scope="module")
def scoring():
    """The mean and log deviation of one iteration's scores."""

    @jax.jit
    def both(params, encoded, graph, mix, before):
        decoder, head = OrderDecoder(TINY), head_input(encoded, graph, "order")
        inside = {"params": params["params"]["order"]}
        mixing = decoder.apply(inside, encoded.pooled, method=OrderDecoder.mixing)
        found = [
            decoder.apply(inside, head, mix, before, t, method=OrderDecoder.scoring)
            for t in range(2)
        ]
        return mixing, found

    return both


@pytest.fixture(scope="module")
def judge():
    """Log-densities of orders, compiled once."""

    @jax.jit
    def log_prob(params, encoded, graph, actions):
        return RingPolicy(TINY).apply(params, encoded, graph, "order", actions, method=Policy.judge)

    return log_prob


def test_log_densities_are_those_of_the_normal_distribution(drawn, scoring, judge):
    agent, padded, encoded, actions = drawn
    found, _ = judge(agent.params, encoded, padded.graph, actions)
    (mean, spread), _ = scoring(
        agent.params, encoded, padded.graph, actions.mix, actions.scores[:, 0]
    )
    constant = 0.5 * np.log(2 * np.pi)
    expected = norm.logpdf(np.asarray(actions.mix), np.asarray(mean), np.exp(np.asarray(spread)))
    np.testing.assert_allclose(np.asarray(found.mix), expected + constant, atol=1e-3)
    before = jnp.zeros_like(actions.scores[:, 0])
    for t in range(2):
        _, moments = scoring(agent.params, encoded, padded.graph, actions.mix, before)
        middle, log_sigma = (np.asarray(x)[:, :UNITS] for x in moments[t])
        before = actions.scores[:, t]
        expected = norm.logpdf(np.asarray(before)[:, :UNITS], middle, np.exp(log_sigma))
        got = np.asarray(found.scores)[:, t, :UNITS]
        np.testing.assert_allclose(got, expected + constant, atol=2e-3)


def test_equal_keys_give_equal_draws_and_others_do_not(drawn):
    agent, padded, encoded, actions = drawn
    noise = np.array([1.0, 1.0, 0.5, 0.0], np.float32)
    options, start = {}, {}
    again = draw(
        agent.policy, agent.params, encoded, padded.graph, ("order",), KEY, noise, options, start
    )["order"]
    other = agent.draw(padded, encoded, ("order",), jax.random.key(8), noise)["order"]
    assert np.array_equal(np.asarray(again.scores), np.asarray(actions.scores))
    assert np.abs(np.asarray(other.scores - actions.scores))[:3, -1, :UNITS].max() > 1e-3
