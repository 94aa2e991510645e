"""Sequential dispatch: rollouts against a plain twin, and the weights that they follow."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import jax
import numpy as np
import pytest
from policy.tiny import TINY_DISPATCH
from reference.dispatch import PlainDispatch
from reference.step_problems import random_edges, random_step, step_problem

from go_rl.core import Budget, OpKind, Problem
from go_rl.objectives.makespan.workspace import MakespanWorkspace
from go_rl.policy.agent import Agent, new_agent
from go_rl.policy.dispatch.dispatch_decoder import SEEN, DispatchActions, untrained_weights
from go_rl.policy.dispatch.dispatch_plans import DispatchPlans
from go_rl.policy.dispatch.dispatch_policy import DISPATCHED
from go_rl.policy.dispatch.features import WINDOW
from go_rl.policy.dispatch.rollout import Dispatched, Dispatcher, HeadWeights
from go_rl.policy.network import head_input
from go_rl.policy.policy_search import PolicySearch
from go_rl.verify.check_plan import check_plan

DISPATCH = replace(TINY_DISPATCH, attention_layers=0)
HEADS = ("schedule", "placement")


@cache
def agent(seed: int = 0) -> Agent:
    """Random weights, so that every feature counts."""
    untrained = new_agent(DISPATCH, seed)
    leaves, tree = jax.tree.flatten(untrained.params)
    rng = np.random.default_rng(seed)
    moved = [np.asarray(x + 0.3 * rng.standard_normal(x.shape), np.float32) for x in leaves]
    return untrained.having(jax.tree.unflatten(tree, moved))


def problem(seed: int) -> Problem:
    """Up to 44 matrix products on two to four devices of two kinds, sparse enough that more are
    ready than are compared."""
    rng = np.random.default_rng(seed)
    nodes, devices = int(rng.integers(20, 45)), int(rng.integers(2, 5))
    edges = [edge for edge in random_edges(rng, nodes) if rng.random() < 0.2]
    seconds = rng.uniform(1, 6, (devices, nodes))
    weights = rng.integers(0, 4, nodes).astype(float).tolist()
    kinds = [OpKind.MATMUL] * nodes
    return step_problem(
        seconds, edges, devices, kinds=kinds, weights=weights, latency=float(rng.integers(2))
    )


def decoder(seed: int) -> DispatchPlans:
    return DispatchPlans(MakespanWorkspace(problem(seed)))


def random_weights(seed: int, rows: int = 4) -> HeadWeights:
    rng = np.random.default_rng(seed)
    return HeadWeights(
        *(rng.standard_normal((rows, len(SEEN[head]))).astype(np.float32) for head in HEADS)
    )


def rolled(seed: int) -> tuple[DispatchPlans, Dispatched]:
    found = decoder(seed)
    return found, found.dispatcher.roll_out(random_weights(seed))


def topological(dispatcher: Dispatcher, order: np.ndarray) -> bool:
    a, place = dispatcher.arrays, np.argsort(order)
    return all(
        place[p] < place[u]
        for u in range(len(order))
        for p in a.pred[a.pred_ptr[u] : a.pred_ptr[u + 1]]
    )


@pytest.mark.parametrize("seed", range(6))
def test_rollouts_are_those_of_the_plain_twin(seed):
    """More units are ready than are compared."""
    found, plans = rolled(seed)
    capacity, weights = found.dispatcher.capacity, random_weights(seed)
    most = 0
    for row in range(len(plans.device)):
        assert topological(found.dispatcher, plans.order[row])
        plain = PlainDispatch(found.units, capacity)
        most = max(most, len(plain.ready()))
        device, order = plain.roll_out(weights.select[row], weights.place[row], WINDOW)
        assert plans.order[row].tolist() == order
        assert plans.device[row].tolist() == device
    assert seed > 0 or most > WINDOW


def test_a_device_without_room_is_not_chosen_while_another_has_some():
    found = decoder(1)
    weight = found.units.weight
    capacity = np.full(len(found.dispatcher.capacity), weight.sum())
    capacity[0] *= 0.3
    plans = Dispatcher(found.units, capacity).roll_out(random_weights(1))
    assert max(weight[row == 0].sum() for row in plans.device) <= capacity[0]


def test_an_untrained_policy_is_a_list_scheduler_in_the_mean():
    """Earliest finish time by upward rank; draws differ."""
    found, untrained = decoder(3), new_agent(DISPATCH, 0)
    noise = np.array([0.0, 1.0, 1.0], np.float32)
    actions, _ = found.sample(untrained, "plan", noise, 0)
    for head in HEADS:
        weights = np.asarray(actions[head].weights)
        assert weights[0] == pytest.approx(untrained_weights(head)[0])
        assert (weights[1] != weights[2]).all()


def test_the_density_of_weights_is_that_of_the_gaussian_that_draws_them():
    """Many draws: their mean and deviation give the log-density that the policy states."""
    found = decoder(2)
    padded, policy, params = found.padded, agent().policy, agent().params
    encoded = agent().encode(padded)
    many = agent().draw(padded, encoded, DISPATCHED, jax.random.key(0), np.ones(4000, np.float32))
    for head in HEADS:
        rows = np.asarray(many[head].weights, np.float64)
        mean, deviation = rows.mean(axis=0), rows.std(axis=0)
        one = DispatchActions(many[head].weights[:50])
        density = policy.apply(
            params, head_input(encoded, padded.graph, head), head, one, method=_density
        )
        scale = untrained_weights(head)[1]
        expected = -0.5 * ((rows[:50] - mean) / deviation) ** 2 - np.log(deviation / scale)
        assert np.asarray(density) == pytest.approx(expected.sum(axis=1), abs=1.5)


def _density(policy, head, decision, actions):
    return policy.decoders[decision].log_prob(head, actions)[0].weights


def test_equal_seeds_give_equal_plans_and_others_differ():
    found = decoder(3)
    noise = np.ones(4, np.float32)
    one, again, other = (found.sample(agent(), "plan", noise, seed)[1] for seed in (1, 1, 2))
    assert np.array_equal(one.priced.decisions.device, again.priced.decisions.device)
    assert not np.array_equal(one.priced.decisions.device, other.priced.decisions.device)


@pytest.mark.parametrize("decide", [("placement",), ("schedule",), ("placement", "fusion")])
def test_plans_are_legal_whatever_is_decided(decide):
    """Few devices, memory that may not suffice, nodes that cannot run everywhere."""
    for seed in range(8):
        found = random_step(seed, decisions=decide)
        plan = PolicySearch(agent()).optimize(found, Budget(samples=20), 0)
        assert check_plan(plan, found).ok or not plan.evaluation.status.ok
