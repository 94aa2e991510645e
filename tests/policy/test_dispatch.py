"""Sequential dispatch: rollouts against a plain twin, the weights that they follow, the search."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from policy.tiny import TINY_DISPATCH, lively
from reference.dispatch import PlainDispatch
from reference.link_groups import with_random_links
from reference.step_problems import random_edges, random_kinds, random_step, step_problem

from go_rl.core import DECISIONS, Budget, OpKind, Problem
from go_rl.core.graph.fusion import heavy_nodes
from go_rl.objectives.common.cross_entropy import BATCH, CrossEntropy
from go_rl.objectives.makespan.methods.metis import metis_devices
from go_rl.objectives.makespan.workspace import MakespanWorkspace
from go_rl.policy.agent import Agent, new_agent
from go_rl.policy.dispatch.dispatch_plans import DispatchPlans
from go_rl.policy.dispatch.dispatch_search import DispatchSearch
from go_rl.policy.dispatch.features import (
    FUSE_FEATURES,
    WIDTH,
    WINDOW,
    HeadWeights,
    head_weights,
    list_schedulers,
)
from go_rl.policy.dispatch.rollout import Dispatched, Dispatcher
from go_rl.policy.policy_search import PolicySearch
from go_rl.policy.prototypes.plans import preferred
from go_rl.policy.prototypes.policy import PLAN
from go_rl.verify.check_plan import check_plan


@cache
def agent() -> Agent:
    return lively(TINY_DISPATCH)


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


@pytest.mark.parametrize("seed", range(6))
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


def test_list_schedulers_follow_the_placements_made_beforehand():
    """Where all is far cheaper than the time that following costs."""
    found = decoder(2)
    dispatcher = found.dispatch.dispatcher
    plans = dispatcher.roll_out(head_weights(1e3 * list_schedulers()))
    for row, advised in zip(plans.device[1:], dispatcher.advice, strict=True):
        assert row.tolist() == advised.tolist()
    metis = found.workspace.decisions(metis_devices(found.workspace, 0)[None]).device
    assert found.units.nodes_of(dispatcher.advice[1:]).tolist() == metis.tolist()


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


def test_an_untrained_policy_is_a_list_scheduler_first():
    """Earliest finish time by upward rank, all fused; each prototype comes once in a round."""
    found, untrained = decoder(3), new_agent(TINY_DISPATCH, 0)
    first = preferred(untrained, found)
    assert (first[0] == 0).all()
    assert len(np.unique(first, axis=0)) == TINY_DISPATCH.prototypes
    noise = np.ones(2 * TINY_DISPATCH.prototypes, np.float32)
    actions, _ = found.sample(agent(), "plan", noise, 0)
    half = np.split(np.asarray(actions[PLAN].prototype), 2)
    assert all(len(set(part)) == TINY_DISPATCH.prototypes for part in half)


def test_a_search_improves_on_what_the_policy_prefers_and_keeps_it():
    found = decoder(1)
    search = DispatchSearch(agent())
    short, long = (
        search.optimize(found.workspace.problem, Budget(samples=n), 0) for n in (65, 400)
    )
    first = found.workspace.evaluate(found.dispatch.decide(preferred(agent(), found)))
    assert short.value <= first.seconds.min()
    assert long.value <= short.value
    plan, tuned = search.learn(found.workspace.problem, Budget(samples=400), 0)
    again = found.workspace.evaluate(found.dispatch.decide(preferred(tuned, found)[:1]))
    assert again.seconds[0] == plan.value == long.value


def test_a_search_goes_on_from_its_memory():
    """Two halves are the whole, where they end with a batch."""
    problem, search = decoder(2).workspace.problem, DispatchSearch(agent())
    count = 1 + TINY_DISPATCH.prototypes + 2 * BATCH
    memory: dict = {}
    half = search.with_memory(memory)
    parts = [half.optimize(problem, Budget(samples=n), 0).value
             for n in (1 + TINY_DISPATCH.prototypes, 1 + 2 * BATCH)]  # fmt: skip
    assert min(parts) == search.optimize(problem, Budget(samples=count), 0).value


def test_the_cross_entropy_method_finds_a_minimum_and_ends():
    """A bowl in six numbers; each batch is drawn around the best so far."""
    search = CrossEntropy(
        np.random.default_rng(0).standard_normal((BATCH, 6)).astype(np.float32), 0
    )
    while not search.settled:
        asked = search.ask()
        search.tell(((asked - 0.5) ** 2).sum(axis=1).astype(float))
    best = search.finds.deviations[0]
    assert search.finds.seconds[0] < 0.2
    assert (np.diff(search.finds.seconds) >= 0).all()
    search.begin_anew()
    around = search.ask()
    assert (around[0] == best).all()
    assert around.std(axis=0).mean() > 0.5


def test_a_batch_that_is_told_in_pieces_moves_the_search_once():
    first = np.random.default_rng(0).standard_normal((BATCH, 6)).astype(np.float32)
    whole, pieces = CrossEntropy(first, 0), CrossEntropy(first, 0)
    for _ in range(3):
        seconds = (whole.ask() ** 2).sum(axis=1).astype(float)
        whole.tell(seconds)
        for piece in (seconds[:2], seconds[2:20], seconds[20:]):
            assert len(pieces.ask()) >= len(piece)
            pieces.tell(piece)
    assert (whole.ask() == pieces.ask()).all()
    assert (whole.finds.seconds == pieces.finds.seconds).all()


def test_a_search_that_is_kept_spends_all_its_time():
    problem = decoder(3).workspace.problem
    search = DispatchSearch(agent())
    assert search.optimize(problem, Budget(samples=4000), 0).samples < 4000
    assert search.with_memory({}).optimize(problem, Budget(samples=4000), 0).samples == 4000


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
