"""The ring policy as published: free logits of chips, no reference orders, SAMPLE node by node."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from policy.tiny import TINY, as_arrays, chain, lattice, random_graph

from go_rl.core import Budget, Means, PolicyError, TrainingError
from go_rl.objectives.ring.workspace import RingWorkspace
from go_rl.policy.agent import Agent, new_agent
from go_rl.policy.config import MAX_CHIPS, RingPolicyConfig
from go_rl.policy.controls import controlled
from go_rl.policy.learn.config import RingTrainConfig, SampleConfig
from go_rl.policy.learn.fine_tune import FineTuned
from go_rl.policy.network import Policy
from go_rl.policy.observations.buckets import pad
from go_rl.policy.policy_search import PolicySearch
from go_rl.policy.ring.observation import SCALARS
from go_rl.policy.ring.ring_plans import RingPlans
from go_rl.policy.ring.ring_policy import RingPolicy

PUBLISHED = replace(TINY, orders=False, prior=False)
NOISE = np.array([0.0, 1.0, 1.0, 1.0], np.float32)


def lively(config: RingPolicyConfig = PUBLISHED) -> Agent:
    """Random weights everywhere."""
    agent, rng = new_agent(config, 0), np.random.default_rng(1)
    moved = jax.tree.map(
        lambda x: x + jnp.asarray(0.3 * rng.standard_normal(x.shape), jnp.float32), agent.params
    )
    return agent.having(moved)


def distributions(agent: Agent, graph) -> np.ndarray:
    padded = pad(graph)
    encoded = agent.encode(padded)
    drawn = agent.draw(padded, encoded, ("placement",), jax.random.key(3), NOISE)["placement"]
    return np.asarray(drawn.log_probs)[:, : graph.num_units]


def test_reference_orders_change_nothing():
    graph = random_graph(0, 24)
    features, places = graph.features.copy(), 1.0 - graph.places
    features[:, -places.shape[1] :] = places
    for name in ("span_level", "span_barycentric"):
        features[:, SCALARS.index(name)] += 1.0
    other = replace(graph, features=features, places=places)
    assert np.array_equal(distributions(lively(), graph), distributions(lively(), other))


def test_edges_and_work_still_count():
    graph = random_graph(0, 24)
    features = graph.features.copy()
    features[:, SCALARS.index("log_seconds")] += 1.0
    for other in (
        replace(graph, features=features),
        replace(graph, senders=graph.senders[:0], receivers=graph.receivers[:0]),
    ):
        assert not np.array_equal(distributions(lively(), graph), distributions(lively(), other))


def test_logits_are_free_and_untrained_ones_uniform():
    """Each chip has a number of its own, so a distribution may have two peaks."""
    graph = random_graph(0, 24, chips=5)
    np.testing.assert_allclose(
        np.exp(distributions(new_agent(PUBLISHED, 0), graph))[..., :5], 0.2, rtol=1e-5
    )
    agent = new_agent(PUBLISHED, 0)
    decoder = agent.params["params"]["placement"]
    wanted = jnp.zeros(MAX_CHIPS).at[jnp.array([0, 4])].set(3.0)
    decoder = {**decoder, "emit": {**decoder["emit"], "bias": wanted}}
    two_peaks = agent.having({"params": {**agent.params["params"], "placement": decoder}})
    probability = np.exp(distributions(two_peaks, graph))[0, 0]
    assert probability[0] == pytest.approx(probability[4])
    assert probability[0] > 5 * probability[2]
    assert probability[5:].max() == 0.0


def test_it_has_no_parameters_of_orders():
    names = set(new_agent(PUBLISHED, 0).params["params"])
    assert names == {"encoder", "heads", "placement"}
    assert "order" in new_agent(replace(PUBLISHED, orders=True), 0).params["params"]


def test_credit_is_what_the_solver_says_its_samples_are_worth():
    """Under SAMPLE the log-probabilities of chips sum to `Samples.log_prob`."""
    problem, agent = lattice(2, chips=3), lively()
    decoder = RingPlans(problem, RingWorkspace(problem), "sample-nodes")
    padded, noise = decoder.padded, np.ones(8, np.float32)
    encoded = agent.encode(padded)
    actions = decoder.draw(agent, encoded, "placement", noise, jax.random.key(5))
    rollouts = decoder.price(decoder.proposals(actions, noise), 3)
    assert rollouts.priced.ok.all()
    credited = decoder.credit(actions, rollouts)["placement"]
    judge = jax.jit(RingPolicy(PUBLISHED).apply, static_argnames="method", static_argnums=3)
    found, _ = judge(
        agent.params, encoded, as_arrays(padded)[0], "placement", credited, method=Policy.judge
    )
    last = np.asarray(found.chips.chosen[:, -1] * found.chips.free[:, -1]).sum(axis=1)
    assert rollouts.drawn is not None
    assert set(rollouts.drawn.means.tolist()) == {Means.TREE}
    np.testing.assert_allclose(last, rollouts.drawn.log_prob, rtol=1e-4)


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


def test_blind_it_depends_on_single_units_alone():
    graph = random_graph(0, 24)
    other = replace(graph, senders=graph.senders[:0], receivers=graph.receivers[:0])
    blind = controlled(lively(), "blind", 0)
    assert np.array_equal(distributions(blind, graph), distributions(blind, other))


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
