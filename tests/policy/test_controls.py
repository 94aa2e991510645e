"""Control arms, and a search's time."""

from dataclasses import replace
from functools import cache

import jax
import numpy as np
import pytest
from policy.tiny import (
    TINY_DISPATCH,
    TINY_NODES,
    equal,
    lively,
    lively_agent,
    random_graph,
    two_chains,
)
from policy.tiny import tiny_makespan_agent as agent
from reference.step_networks import operators, priced

from go_rl.core import Budget, Plan, Problem, Progress
from go_rl.objectives.makespan.workspace import MakespanWorkspace
from go_rl.policy.agent import Actions, Agent
from go_rl.policy.config import CONTROLS
from go_rl.policy.controls import controlled
from go_rl.policy.dispatch.dispatch_plans import DispatchPlans
from go_rl.policy.observations.buckets import Padded, pad
from go_rl.policy.observations.policy_graph import PolicyGraph
from go_rl.policy.policy_search import DOUBT, PolicySearch
from go_rl.policy.ring.observation import RING_COLUMNS, SCALARS
from go_rl.policy.ring.ring_policy import PLACEMENT

KINDS = {
    "ring": lambda: lively_agent(),
    "nodes": lambda: lively(TINY_NODES),
    "dispatch": lambda: lively(TINY_DISPATCH),
}


def drawn(agent: Agent, padded: Padded) -> Actions:
    noise = np.array([0.0, 1.0, 1.0, 1.0], np.float32)
    return agent.draw(padded, agent.encode(padded), (PLACEMENT,), jax.random.key(3), noise)


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
    assert equal(drawn(blind, one), drawn(blind, two))
    assert not equal(drawn(seeing, one), drawn(seeing, two))


def test_a_ring_policy_knows_no_places_in_orders():
    graph = random_graph(0, 24)
    one, two = pad(graph), pad(with_other_places(graph))
    assert equal(drawn(lively_agent(), one), drawn(lively_agent(), two))


@pytest.mark.slow
@pytest.mark.parametrize("control", CONTROLS)
def test_every_arm_plans(control):
    problem = two_chains().workspace.problem
    search = PolicySearch(KINDS["dispatch"](), control=control)
    plan = search.optimize(problem, Budget(samples=20), 0)
    assert plan.evaluation.status.ok
    assert plan.optimizer == f"policy ({control})"
    assert any(f"Control arm {control} of policy" in note for note in plan.notes)


BATCH = TINY_DISPATCH.prototypes
"""Samples of a round."""


@pytest.mark.parametrize(
    ("control", "name"), [(None, "policy (blind)"), ("untrained", "policy (untrained, blind)")]
)
def test_plans_of_weights_that_were_trained_blind_say_so(control, name):
    blind = controlled(KINDS["dispatch"](), "blind", 0)
    problem = two_chains().workspace.problem
    plan = PolicySearch(blind, control=control).optimize(problem, Budget(samples=2), 0)
    assert plan.optimizer == name
    assert any("saw no edges" in note for note in plan.notes)


@cache
def problem() -> Problem:
    return priced(operators(3), "p100x2")


def searched(**budget) -> Plan:
    return PolicySearch(agent()).optimize(problem(), Budget(**budget), 5)


def whole_batches(samples: int, seed: int) -> list[float]:
    """Seconds of the default plan and of batches drawn, decoded and priced whole."""
    workspace = MakespanWorkspace(problem())
    decoder = DispatchPlans(workspace)
    found = workspace.evaluate(workspace.reference).seconds.tolist()
    for rounds in range(-(-samples // BATCH)):
        noise = np.resize(np.array(DOUBT, np.float32), BATCH) * min(rounds, 1)
        _, drawn = decoder.sample(agent(), "plan", noise, seed * 1_000_003 + rounds)
        found += drawn.priced.seconds.tolist()
    return found[:samples]


@pytest.mark.parametrize("limit", [{}, {"seconds": 600.0}])
@pytest.mark.parametrize("samples", [1, 2, 17, 40])
def test_a_number_of_samples_buys_the_same_ones_with_and_without_a_limit_in_time(samples, limit):
    seconds = whole_batches(samples, 5)
    bests = [s for i, s in enumerate(seconds) if s < min(seconds[:i], default=np.inf)]
    plan = searched(samples=samples, **limit)
    assert plan.samples == samples
    assert [point.seconds for point in plan.curve] == bests


class Clock:
    """Time passes when a batch is drawn, and with every plan that is priced."""

    def __init__(self, monkeypatch, drawing: float, pricing: float) -> None:
        self.now, self.pieces, self.batches = 0.0, [], 0
        draw, price = Agent.draw, MakespanWorkspace.evaluate

        def slow_draw(*given):
            self.now += drawing
            self.batches += 1
            return draw(*given)

        def slow_price(workspace, plans):
            self.now += pricing * len(plans.device)
            self.pieces.append(len(plans.device))
            return price(workspace, plans)

        monkeypatch.setattr(Progress, "wall_seconds", property(lambda _: self.now))
        monkeypatch.setattr(Agent, "draw", slow_draw)
        monkeypatch.setattr(MakespanWorkspace, "evaluate", slow_price)


@pytest.fixture
def ready():
    """The default plan is priced beforehand, and the decoder is built."""
    searched(samples=2)


def test_no_batch_is_drawn_that_would_take_longer_than_what_is_left(monkeypatch, ready):
    """Draws end at 4, 8 and 12 of 13 seconds; a fourth would end at 16."""
    clock = Clock(monkeypatch, drawing=4.0, pricing=1e-9)
    searched(seconds=13.0)
    assert clock.batches == 3
    assert clock.now < 13.0
    late = Clock(monkeypatch, drawing=40.0, pricing=1.0)
    plan = searched(seconds=13.0)
    assert (late.batches, plan.samples) == (1, 2)
