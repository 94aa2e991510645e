"""GO's node decisions: their distribution against a plain twin, and the plans they are."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from policy.tiny import TINY_NODES, drawn_plans, lively
from reference.node_logits import device_log_probs, level_log_probs
from reference.step_problems import random_step, step_problem
from rounding import assert_rounded_alike

from go_rl.core import Budget, OpKind, Problem, Progress
from go_rl.core.objective import DECISIONS
from go_rl.objectives.common.incumbent import Incumbent, finish_plan
from go_rl.objectives.makespan.workspace import MakespanWorkspace
from go_rl.policy.agent import Agent
from go_rl.policy.network import Policy
from go_rl.policy.nodes.node_decoder import NodeActions
from go_rl.policy.nodes.nodes_plans import NodesPlans, node_decisions
from go_rl.policy.nodes.nodes_policy import NodesPolicy
from go_rl.verify.check_plan import check_plan

EDGES = [(0, 2, 1.0), (1, 2, 1.0), (2, 3, 2.0), (2, 4, 1.0), (3, 5, 1.0)]
DEVICES, NOISE = 3, np.array([1.0, 1.0, 2.0, 0.0], np.float32)


@cache
def agent_of_nodes() -> Agent:
    return lively(TINY_NODES, 0.4)


def lattice() -> Problem:
    """Six matrix products; the third device is half as fast and cannot run the last."""
    fast = [1.0, 2.0, 3.0, 1.0, 2.0, 1.0]
    slow = [2 * s for s in fast[:-1]] + [np.inf]
    return step_problem(
        [fast, fast, slow], EDGES, DEVICES, kinds=[OpKind.MATMUL] * 5 + [OpKind.ELEMENTWISE],
        decisions=DECISIONS,
    )  # fmt: skip


@pytest.fixture(scope="module")
def drawn():
    """An agent, a decoder, and four samples of every task, the last without noise."""
    agent, decoder = agent_of_nodes(), NodesPlans(MakespanWorkspace(lattice()))
    return agent, decoder, drawn_plans(agent, decoder, NOISE, 7)


@jax.jit
def judged(params, graph, real, actions):
    """Log-probabilities and entropy by task."""
    policy, chips = NodesPolicy(TINY_NODES), jnp.int32(DEVICES)
    encoded = policy.apply(params, graph, real, chips, method=Policy.encode)
    return encoded, {
        task: policy.apply(params, encoded, graph, task, one, method=Policy.judge)
        for task, one in actions.items()
    }


def judge(agent: Agent, decoder: NodesPlans, actions):
    return judged(agent.params, decoder.padded.graph, decoder.padded.real, actions)


def plain(agent, decoder, encoded, task, before, t, b, actions):
    """[U, K] of the plain twin."""
    layers = agent.params["params"][f"decoders_{task}"]["score"]
    units = decoder.units.num_units
    h = np.asarray(encoded.heads[task], np.float64)[:units]
    pooled = np.asarray(encoded.pooled, np.float64)
    succ = decoder.units.units
    senders = np.repeat(np.arange(units), np.diff(succ.succ_ptr))
    edges = list(zip(senders.tolist(), succ.succ.tolist(), strict=True))
    options = decoder.options[task][:units]
    if task == "placement":
        share = np.asarray(decoder.padded.graph.nodes["share"], np.float64)[:units]
        latent = np.asarray(actions.latent)[b, : TINY_NODES.directions].tolist()
        stay = float(actions.stay[b, t])
        return device_log_probs(layers, h, pooled, edges, share, options, before, t, latent, stay)
    return level_log_probs(layers, h, pooled, edges, options, before)


def seen_first(actions: NodeActions, b: int, units: int) -> list[int] | None:
    """What the first iteration of a sample saw."""
    return None if actions.start is None else np.asarray(actions.start)[b, :units].tolist()


def test_log_probabilities_are_those_of_a_plain_twin(drawn):
    """Of every sample, task, iteration and unit; what has one option counts nothing."""
    agent, decoder, actions = drawn
    units = decoder.units.num_units
    encoded, found = judge(agent, decoder, actions)
    for task in DECISIONS:
        got, entropy = found[task]
        spread, rows = [], np.arange(units)
        for b in range(len(NOISE)):
            before = seen_first(actions[task], b, units)
            for t in range(TINY_NODES.iterations):
                expected = plain(agent, decoder, encoded, task, before, t, b, actions[task])
                before = np.asarray(actions[task].chosen)[b, t, :units].tolist()
                row = np.asarray(got.choices.chosen)[b, t, :units]
                assert_rounded_alike(row, expected[rows, before], 4000)
                finite = np.where(np.isfinite(expected), expected, 0.0)
                spread.append(-(np.exp(expected) * finite).sum(axis=1))
        free = np.asarray(got.choices.free)[:units] > 0
        assert np.asarray(got.choices.chosen)[:, :, units:].max() == 0.0
        by_hand = np.mean(np.stack(spread)[:, free]) if free.any() else 0.0
        assert float(entropy) == pytest.approx(by_hand, abs=1e-4)
    assert np.asarray(found["placement"][0].choices.free)[:units].all()


def test_without_noise_the_likeliest_is_taken_and_equal_seeds_draw_equally(drawn):
    agent, decoder, actions = drawn
    units = decoder.units.num_units
    encoded, _ = judge(agent, decoder, actions)
    for task in DECISIONS:
        chosen = np.asarray(actions[task].chosen)[3, :, :units]
        before = seen_first(actions[task], 3, units)
        for t in range(TINY_NODES.iterations):
            expected = plain(agent, decoder, encoded, task, before, t, 3, actions[task])
            # The likeliest, or as likely but for rounding.
            assert_rounded_alike(expected[range(units), chosen[t]], expected.max(axis=1), 4000)
            before = chosen[t].tolist()
    again, other = (drawn_plans(agent, decoder, NOISE, seed) for seed in (7, 8))
    same = [np.array_equal(again[t].chosen, actions[t].chosen) for t in DECISIONS]
    assert all(same)
    assert not np.array_equal(other["schedule"].chosen, actions["schedule"].chosen)


def test_devices_that_do_not_exist_or_cannot_run_a_unit_are_never_drawn(drawn):
    agent, decoder, _ = drawn
    units, last = decoder.units.num_units, decoder.units.unit_of[5]
    assert decoder.options["placement"].shape[1] == 4
    hot = np.full(4, 4.0, np.float32)
    many = [drawn_plans(agent, decoder, hot, seed)["placement"].chosen for seed in range(16)]
    placed = np.concatenate([np.asarray(chosen) for chosen in many])[:, :, :units]
    assert set(np.delete(placed, last, axis=2).ravel().tolist()) == {0, 1, 2}
    assert set(placed[:, :, last].ravel().tolist()) == {0, 1}


def chosen(rows: dict[str, list[list[int]]]) -> dict[str, NodeActions]:
    """Actions whose last iteration is given and whose first is nonsense."""
    found = {}
    for task, row in rows.items():
        last = np.array(row)[:, None]
        each = last[:, 0].shape
        found[task] = NodeActions(jnp.asarray(np.concatenate([1 - last, last], axis=1)),
                                  jnp.zeros((*each, 2)), jnp.zeros(each, jnp.int32))  # fmt: skip
    return found


def test_decisions_are_the_plan_by_hand():
    """No scheduler moves a node; a larger level runs first, and 0 fuses nothing."""
    kinds = [OpKind.MATMUL, OpKind.OTHER] * 2
    edges = [(0, 1, 1.0), (2, 3, 1.0)]
    problem = step_problem([1.0] * 4, edges, 2, kinds=kinds, decisions=DECISIONS)
    decoder = NodesPlans(MakespanWorkspace(problem))
    assert decoder.units.unit_of.tolist() == [0, 1, 2, 3]
    plans = node_decisions(
        decoder.workspace,
        decoder.units,
        chosen({"placement": [[0, 1, 1, 0]], "schedule": [[3, 19, 0, 7]], "fusion": [[0] * 4]}),
    )
    assert plans.device.tolist() == [[0, 1, 1, 0]]
    assert plans.priority is not None
    assert plans.priority.tolist() == [[3, 19, 0, 7]]
    assert plans.kernel_leader is not None
    assert plans.kernel_leader.tolist() == [[0, 1, 2, 3]]


def test_plans_of_random_problems_are_legal():
    """On three or four devices of one or two kinds: the checker misses nothing but room."""
    judged = 0
    for seed in range(40):
        problem = random_step(seed, decisions=DECISIONS)
        decoder = NodesPlans(MakespanWorkspace(problem))
        workspace = decoder.workspace
        if problem.hardware.num_devices < 3 or workspace.infeasible or not decoder.units.num_units:
            continue
        plans = node_decisions(
            decoder.workspace, decoder.units, drawn_plans(agent_of_nodes(), decoder, NOISE, seed)
        )
        for row in range(len(NOISE)):
            progress = Progress(Budget(samples=1), 1)
            incumbent = Incumbent(workspace, progress)
            priced = workspace.evaluate(plans.row(row))
            incumbent.offer_scored(priced)
            plan = finish_plan(workspace, incumbent, "nodes", seed, progress)
            verdict = check_plan(plan, problem)
            assert not verdict.violations
            assert verdict.ok == np.isfinite(priced.seconds[0])
            assert plan.device.tolist() == plans.device[row].tolist()
            judged += verdict.ok
    assert judged > 40
