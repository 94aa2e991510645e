"""Sequential dispatch: rollouts against a plain twin, the weights that they follow, the search."""

from dataclasses import replace
from functools import cache

import jax
import numpy as np
import pytest
from policy.tiny import TINY_DISPATCH
from reference.dispatch import PlainDispatch
from reference.link_groups import with_random_links
from reference.step_problems import random_edges, random_kinds, random_step, step_problem

from go_rl.core import DECISIONS, Budget, OpKind, Problem
from go_rl.core.graph.fusion import heavy_nodes
from go_rl.objectives.makespan.workspace import MakespanWorkspace
from go_rl.policy.agent import Agent, new_agent
from go_rl.policy.dispatch.dispatch_plans import DispatchPlans
from go_rl.policy.dispatch.features import (
    FUSE_FEATURES,
    WIDTH,
    WINDOW,
    HeadWeights,
    head_weights,
)
from go_rl.policy.dispatch.rollout import Dispatched, Dispatcher
from go_rl.policy.policy_search import PolicySearch
from go_rl.verify.check_plan import check_plan


@cache
def agent(seed: int = 0) -> Agent:
    """Random weights, so that every feature counts."""
    untrained = new_agent(TINY_DISPATCH, seed)
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
    return head_weights(rng.standard_normal((rows, WIDTH)).astype(np.float32))


def topological(dispatcher: Dispatcher, order: np.ndarray) -> bool:
    a, place = dispatcher.arrays, np.argsort(order)
    return all(
        place[p] < place[u]
        for u in range(len(order))
        for p in a.pred[a.pred_ptr[u] : a.pred_ptr[u + 1]]
    )


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("links", ["uniform", "groups"])
def test_rollouts_are_those_of_the_plain_twin(seed, links):
    """More units are ready than are compared; links are all alike, or of unlike classes."""
    given = problem(seed) if links == "uniform" else with_random_links(seed, problem(seed))
    found = DispatchPlans(MakespanWorkspace(given))
    plans = found.dispatch.dispatcher.roll_out(random_weights(seed))
    dispatcher, weights = found.dispatch.dispatcher, random_weights(seed)
    capacity = dispatcher.capacity
    most = 0
    for row in range(len(plans.device)):
        assert topological(dispatcher, plans.order[row])
        plain = PlainDispatch(found.units, capacity, dispatcher.advice)
        most = max(most, len(plain.ready()))
        device, order = plain.roll_out(weights.select[row], weights.place[row], WINDOW)
        assert plans.order[row].tolist() == order
        assert plans.device[row].tolist() == device
        assert plans.end[row] == pytest.approx([plain.end[u] for u in range(len(device))])
    assert seed > 0 or most > WINDOW


def test_a_device_without_room_is_not_chosen_while_another_has_some():
    found = decoder(1)
    weight = found.units.weight
    capacity = np.full(len(found.dispatch.dispatcher.capacity), weight.sum())
    capacity[0] *= 0.3
    plans = replace(found.dispatch.dispatcher, capacity=capacity).roll_out(random_weights(1))
    assert max(weight[row == 0].sum() for row in plans.device) <= capacity[0]


def fused_plainly(found: DispatchPlans, weights: HeadWeights, row: int, plans: Dispatched):
    """Producers that the head fuses, feature by feature."""
    problem, merged = found.workspace.problem, found.units
    graph, unit_of, work = problem.graph, merged.unit_of, merged.units.work
    device, end = plans.device[row], plans.end[row]
    seconds = [merged.seconds[device[u], u] for u in range(merged.num_units)]
    busy = np.bincount(device, seconds, len(merged.seconds))
    fused, heavy = set(), heavy_nodes(graph)
    for node in np.flatnonzero(found.workspace.fuser.may_fuse & (unit_of >= 0)):
        u = unit_of[node]
        reads = {int(v) for v in graph.receivers[graph.senders == node] if unit_of[v] >= 0}
        others = [unit_of[v] for v in reads]
        starts = [max(end[v] - seconds[v] - end[u], 0.0) for v in others if v != u]
        mean, shown = sum(seconds) / len(seconds), dict.fromkeys(FUSE_FEATURES, 0.0)
        shown["any"] = 1.0
        shown["seconds"] = np.log1p(problem.seconds[:, node].min() / work.mean())
        sent = problem.output_bytes[node] / problem.hardware.links.bandwidth
        shown["result"] = np.log1p(sent / work.mean())
        shown["consumers"] = np.log(max(len(reads), 1))
        shown["consumers here"] = sum(device[v] == device[u] for v in others) / max(len(others), 1)
        shown["heavy"] = float(heavy[node])
        shown["consumer heavy"] = float(any(heavy[v] for v in reads))
        shown["consumers in the unit"] = sum(v == u for v in others) / max(len(others), 1)
        shown["backward"] = float(graph.is_backward[node])
        shown["waiting"] = np.log1p(min(starts) / mean) if starts else 0.0
        shown["load"] = len(busy) * busy[device[u]] / sum(seconds) - 1.0
        left = max(end) - end[u] - (merged.upward_rank[u] - work[u])
        shown["slack"] = np.log1p(max(left, 0.0) / mean)
        shown["number"] = node / graph.num_nodes
        if sum(w * x for w, x in zip(weights.fuse[row], shown.values(), strict=True)) > 0:
            fused.add(int(node))
    return fused


@pytest.mark.parametrize("seed", range(4))
def test_the_fusion_head_is_its_plain_twin(seed):
    rng = np.random.default_rng(seed)
    edges = random_edges(rng, 30)
    found = DispatchPlans(
        MakespanWorkspace(
            step_problem(
                rng.uniform(1, 6, (1, 30)), edges, 3, kinds=random_kinds(rng, 30, edges),
                output_bytes=rng.integers(0, 9, 30).astype(float).tolist(), decisions=DECISIONS,
            )
        )
    )  # fmt: skip
    weights = random_weights(seed)
    plans = found.dispatch.dispatcher.roll_out(weights)
    priority = found.dispatch.fusion_head.priorities(weights.fuse, plans)
    for row in range(len(priority)):
        assert set(np.flatnonzero(priority[row])) == fused_plainly(found, weights, row, plans)


@pytest.mark.parametrize("decide", [("placement",), ("schedule",), ("placement", "fusion")])
def test_plans_are_legal_whatever_is_decided(decide):
    """Few devices, memory that may not suffice, nodes that cannot run everywhere."""
    for seed in range(8):
        found = random_step(seed, decisions=decide)
        plan = PolicySearch(agent()).optimize(found, Budget(samples=20), 0)
        assert check_plan(plan, found).ok or not plan.evaluation.status.ok
