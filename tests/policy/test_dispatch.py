"""Sequential dispatch: rollouts against a plain twin, and JAX against compiled code."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import jax
import numpy as np
import pytest
from policy.tiny import TINY
from reference.dispatch import PlainDispatch
from reference.step_problems import random_edges, random_step, step_problem

from go_rl.core import Budget, Objective, OpKind, Problem
from go_rl.objectives.makespan.workspace import MakespanWorkspace
from go_rl.policy.agent import Agent, new_agent
from go_rl.policy.decoders.dispatch_decoder import DispatchChoices
from go_rl.policy.decoders.head_input import HeadInput
from go_rl.policy.dispatch.features import WINDOW
from go_rl.policy.dispatch.rollout import Dispatched, Dispatcher
from go_rl.policy.network import DISPATCHED, Policy, head_input
from go_rl.policy.plan_decoders.dispatch_decisions import (
    dispatch_decisions,
    dispatched,
    recorded_choices,
)
from go_rl.policy.plan_decoders.makespan_decoder import MakespanDecoder
from go_rl.policy.policy_search import PolicySearch
from go_rl.verify.check_plan import check_plan

DISPATCH = replace(TINY, form="dispatch", attention_layers=0)


@cache
def agent(seed: int = 0) -> Agent:
    """Random weights, so that every feature counts."""
    untrained = new_agent(DISPATCH, seed, Objective.MAKESPAN)
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
    seconds = rng.integers(1, 6, (devices, nodes)).astype(float)
    weights = rng.integers(0, 4, nodes).astype(float).tolist()
    kinds = [OpKind.MATMUL] * nodes
    return step_problem(
        seconds, edges, devices, kinds=kinds, weights=weights, latency=float(rng.integers(2))
    )


def decoder(seed: int) -> MakespanDecoder:
    return MakespanDecoder(MakespanWorkspace(problem(seed)))


def drawn(seed: int, noise: float = 1.0, rows: int = 4) -> tuple[MakespanDecoder, Dispatched]:
    found = decoder(seed)
    _, rollouts = found.sample(agent(), "plan", np.full(rows, noise, np.float32), seed)
    assert rollouts.dispatched is not None
    return found, rollouts.dispatched


def topological(dispatcher: Dispatcher, order: np.ndarray) -> bool:
    a, place = dispatcher.arrays, np.argsort(order)
    return all(
        place[p] < place[u]
        for u in range(len(order))
        for p in a.pred[a.pred_ptr[u] : a.pred_ptr[u + 1]]
    )


@pytest.mark.parametrize("seed", range(6))
def test_what_is_seen_is_as_the_plain_twin_sees_it(seed):
    found, plans = drawn(seed)
    dispatcher, count = found.dispatcher, found.units.num_units
    seen = dispatcher.follow(plans, count)
    for row in range(len(plans.device)):
        assert topological(dispatcher, plans.order[row])
        plain = PlainDispatch(found.units, dispatcher.capacity)
        for turn, unit in enumerate(plans.order[row].tolist()):
            inside = seen.candidates[row, turn] >= 0
            candidates = seen.candidates[row, turn][inside].tolist()
            ready = plain.ready()
            assert set(candidates) <= set(ready)
            assert len(candidates) == min(len(ready), WINDOW)
            assert candidates[seen.selected[row, turn]] == unit == seen.unit[row, turn]
            rows = seen.select_seen[row, turn][inside]
            assert rows == pytest.approx(plain.see_units(candidates), abs=1e-4)
            device = int(plans.device[row, unit])
            assert seen.placed[row, turn] == device
            assert seen.place_seen[row, turn] == pytest.approx(plain.see_devices(unit), abs=1e-4)
            plain.take(unit, device)


def judged(policy: Policy, decision: str, head: HeadInput, choices: DispatchChoices) -> jax.Array:
    decoder = policy.decoders[decision]
    return decoder.log_probs(decoder.head(head), choices)


@pytest.mark.parametrize("seed", range(4))
def test_the_network_and_the_rollout_agree_on_the_likeliest_choice(seed):
    """Two implementations of the same heads: compiled code draws, JAX judges."""
    found, plans = drawn(seed, noise=0.0, rows=1)
    policy: Policy = agent().policy
    encoded = agent().encode(found.padded)
    for decision in DISPATCHED:
        choices = recorded_choices(found.dispatcher, plans, len(found.padded.real))[decision]

        head = head_input(encoded, found.padded.graph, decision)
        rows = np.asarray(policy.apply(agent().params, decision, head, choices, method=judged))
        best = rows.max(axis=-1)
        chosen = np.take_along_axis(rows, choices.chosen[..., None], axis=-1)[..., 0]
        there = (choices.unit >= 0).any(axis=-1)
        assert chosen[there] == pytest.approx(best[there], abs=1e-4)


def test_equal_seeds_give_equal_plans_and_others_differ():
    _, one = drawn(3)
    _, again = drawn(3)
    assert np.array_equal(one.device, again.device)
    assert np.array_equal(one.order, again.order)
    assert len({row.tobytes() for row in one.device}) > 1


def test_a_plan_survives_the_way_to_choices_and_back():
    found, plans = drawn(5)
    workspace, units = found.workspace, found.units
    decisions = dispatch_decisions(workspace, units, plans)
    back = dispatched(workspace, units, decisions)
    again = dispatch_decisions(workspace, units, back)
    assert np.array_equal(decisions.device, again.device)
    for row in back.order:
        assert topological(found.dispatcher, row)


@pytest.mark.parametrize("decide", [("placement",), ("schedule",), ("placement", "fusion")])
def test_plans_are_legal_whatever_is_decided(decide):
    """Few devices, memory that may not suffice, nodes that cannot run everywhere."""
    for seed in range(8):
        found = random_step(seed, decisions=decide)
        plan = PolicySearch(agent()).optimize(found, Budget(samples=20), 0)
        assert check_plan(plan, found).ok or not plan.evaluation.status.ok
