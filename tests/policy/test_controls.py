"""Control arms: what each takes away from a policy, and what it leaves."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from policy.tiny import TINY_DISPATCH, TINY_NODES, lively_agent, random_graph, two_chains

from go_rl.core import Budget, PolicyError
from go_rl.policy.agent import Actions, Agent, new_agent
from go_rl.policy.config import CONTROLS, PolicyConfig
from go_rl.policy.controls import controlled
from go_rl.policy.learn.fine_tune import FineTuned
from go_rl.policy.observations.buckets import Padded, pad
from go_rl.policy.observations.policy_graph import PolicyGraph
from go_rl.policy.policy_search import PolicySearch
from go_rl.policy.ring.observation import RING_COLUMNS, SCALARS
from go_rl.policy.ring.ring_policy import PLACEMENT


def lively(config: PolicyConfig) -> Agent:
    """Random weights everywhere."""
    agent = new_agent(config, 0)
    leaves, tree = jax.tree.flatten(agent.params)
    rng = np.random.default_rng(1)
    moved = [x + jnp.asarray(0.3 * rng.standard_normal(x.shape), jnp.float32) for x in leaves]
    return agent.having(jax.tree.unflatten(tree, moved))


KINDS = {
    "ring": lambda: lively_agent(),
    "nodes": lambda: lively(TINY_NODES),
    "dispatch": lambda: lively(TINY_DISPATCH),
}


def drawn(agent: Agent, padded: Padded) -> Actions:
    noise = np.array([0.0, 1.0, 1.0, 1.0], np.float32)
    return agent.draw(padded, agent.encode(padded), (PLACEMENT,), jax.random.key(3), noise)


def same(one: Actions, two: Actions) -> bool:
    return all(
        np.array_equal(a, b)
        for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True)
    )


def without_any_edge(graph: PolicyGraph) -> PolicyGraph:
    return replace(graph, senders=graph.senders[:0], receivers=graph.receivers[:0])


def with_permuted_edges(graph: PolicyGraph) -> PolicyGraph:
    rng = np.random.default_rng(5)
    return replace(graph, receivers=rng.permutation(graph.receivers))


def with_other_derived_columns(graph: PolicyGraph) -> PolicyGraph:
    """Other degrees and spans, and other places as features; the decoder's places stay."""
    features = graph.features.copy()
    features[:, [SCALARS.index(name) for name in RING_COLUMNS.from_edges]] += 1.0
    features[:, -graph.places.shape[1] :] = 0.25
    return replace(graph, features=features)


def with_other_places(graph: PolicyGraph) -> PolicyGraph:
    """Every order reversed, for network and decoder."""
    features, places = graph.features.copy(), 1.0 - graph.places
    features[:, -graph.places.shape[1] :] = places
    return replace(graph, features=features, places=places)


OTHER_EDGES = (without_any_edge, with_permuted_edges, with_other_derived_columns)


@pytest.mark.parametrize("change", OTHER_EDGES)
def test_a_blind_policy_draws_the_same_whatever_the_edges(change):
    graph = random_graph(0, 24)
    one, two = pad(graph), pad(change(graph))
    seeing, blind = lively_agent(), controlled(lively_agent(), "blind", 0)
    assert same(drawn(blind, one), drawn(blind, two))
    assert not same(drawn(seeing, one), drawn(seeing, two))


def test_a_ring_policy_knows_no_places_in_orders():
    graph = random_graph(0, 24)
    one, two = pad(graph), pad(with_other_places(graph))
    assert same(drawn(lively_agent(), one), drawn(lively_agent(), two))


@pytest.mark.slow
@pytest.mark.parametrize("control", CONTROLS)
def test_every_arm_plans(control):
    problem = two_chains().workspace.problem
    search = PolicySearch(KINDS["dispatch"](), control=control)
    plan = search.optimize(problem, Budget(samples=20), 0)
    assert plan.evaluation.status.ok
    assert plan.optimizer == f"policy ({control})"
    assert any(f"Control arm {control} of policy" in note for note in plan.notes)


@pytest.mark.parametrize("make", [PolicySearch, FineTuned])
def test_an_unknown_arm_is_named(make):
    with pytest.raises(PolicyError, match=r"control must be one of .*did you mean 'untrained'"):
        make(control="untraind")
