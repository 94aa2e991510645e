"""GO's node decisions: their distribution against a plain twin, and the plans they are."""

from dataclasses import replace
from functools import cache
from typing import cast

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from policy.tiny import TINY_NODES, drawn_plans
from reference.node_logits import device_log_probs, level_log_probs
from reference.step_problems import random_step, step_problem
from rounding import assert_rounded_alike

from go_rl.core import Budget, OpKind, PolicyError, Problem, Progress
from go_rl.core.objective import DECISIONS
from go_rl.objectives.common.incumbent import Incumbent, finish_plan
from go_rl.objectives.makespan.choices import LEVELS
from go_rl.objectives.makespan.workspace import MakespanWorkspace
from go_rl.policy.agent import Agent, new_agent
from go_rl.policy.distributions.head_input import HeadInput
from go_rl.policy.distributions.surroundings import seen_devices
from go_rl.policy.network import Policy
from go_rl.policy.nodes.device_logits import DeviceLogits, DeviceTerms, device_logits
from go_rl.policy.nodes.node_decisions import node_decisions
from go_rl.policy.nodes.node_decoder import MOVED, NodeActions, staying
from go_rl.policy.nodes.node_options import UnitOptions
from go_rl.policy.nodes.nodes_plans import NodesPlans
from go_rl.policy.nodes.nodes_policy import NodesPolicy
from go_rl.verify.check_plan import check_plan

EDGES = [(0, 2, 1.0), (1, 2, 1.0), (2, 3, 2.0), (2, 4, 1.0), (3, 5, 1.0)]
DEVICES, NOISE = 3, np.array([1.0, 1.0, 2.0, 0.0], np.float32)


@cache
def lively() -> Agent:
    """Random weights everywhere, so that every input shows in the output."""
    agent = new_agent(TINY_NODES, 0)
    leaves, tree = jax.tree.flatten(agent.params)
    rng = np.random.default_rng(1)
    moved = [x + jnp.asarray(0.4 * rng.standard_normal(x.shape), jnp.float32) for x in leaves]
    return Agent(TINY_NODES, jax.tree.unflatten(tree, moved))


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
    agent, decoder = lively(), NodesPlans(MakespanWorkspace(lattice()))
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
                row = np.asarray(got.chosen)[b, t, :units]
                assert_rounded_alike(row, expected[rows, before], 4000)
                finite = np.where(np.isfinite(expected), expected, 0.0)
                spread.append(-(np.exp(expected) * finite).sum(axis=1))
        free = np.asarray(got.free)[:units] > 0
        assert np.asarray(got.chosen)[:, :, units:].max() == 0.0
        by_hand = np.mean(np.stack(spread)[:, free]) if free.any() else 0.0
        assert float(entropy) == pytest.approx(by_hand, abs=1e-4)
    assert np.asarray(found["placement"][0].free)[:units].all()


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


def test_each_iteration_sees_the_one_before_and_no_other(drawn):
    agent, decoder, actions = drawn
    units = decoder.units.num_units
    moved = {
        task: one._replace(chosen=one.chosen.at[:, 0, 2].set((one.chosen[:, 0, 2] + 1) % 2))
        for task, one in actions.items()
    }
    _, one = judge(agent, decoder, actions)
    _, two = judge(agent, decoder, moved)
    for task in ("placement", "schedule"):
        apart = np.abs(np.asarray(one[task][0].chosen - two[task][0].chosen))[:, :, :units]
        assert apart[:, 1].max() > 1e-3, task
        assert apart[:, 0, [0, 1, 3, 4]].max() == 0.0, task


def test_devices_that_do_not_exist_or_cannot_run_a_unit_are_never_drawn(drawn):
    agent, decoder, _ = drawn
    units, last = decoder.units.num_units, decoder.units.unit_of[5]
    assert decoder.options["placement"].shape[1] == 4
    hot = np.full(4, 4.0, np.float32)
    many = [drawn_plans(agent, decoder, hot, seed)["placement"].chosen for seed in range(16)]
    placed = np.concatenate([np.asarray(chosen) for chosen in many])[:, :, :units]
    assert set(np.delete(placed, last, axis=2).ravel().tolist()) == {0, 1, 2}
    assert set(placed[:, :, last].ravel().tolist()) == {0, 1}


def test_room_for_further_devices_changes_nothing(drawn):
    agent, decoder, actions = drawn
    layers = {"params": agent.params["params"]["decoders_placement"]["score"]}
    rng = np.random.default_rng(0)
    h = rng.standard_normal((len(decoder.padded.real), TINY_NODES.hidden)).astype(np.float32)
    options = decoder.options["placement"]
    wider = np.concatenate([options, np.full_like(options, np.inf)], axis=1)
    graph, own = jax.tree.map(jnp.asarray, decoder.padded.graph), actions["placement"]
    real = jnp.asarray(decoder.padded.real)
    head = HeadInput(jnp.asarray(h), jnp.asarray(h[0]), graph, real, jnp.int32(DEVICES))

    @jax.jit
    def logits(options):
        terms = cast("DeviceTerms", DeviceLogits(TINY_NODES).apply(layers, head, options))
        exists = jnp.isfinite(options).any(axis=0)
        seen = seen_devices(graph, own.chosen[:, 0], exists)[:, None]
        return device_logits(terms, 1, seen, options, own.latent)

    narrow, wide = (logits(one) for one in (options, wider))
    assert_rounded_alike(narrow[..., :3], wide[..., :3])
    assert np.ptp(np.asarray(narrow)[..., :3], axis=-1).max() > 0.1


def test_options_by_hand():
    """Twice as slow is 1; a pinned unit has one device; a reduction has no consumer to join."""
    problem = step_problem(
        [[1.0, 2.0, 1.0], [2.0, 2.0, 1.0]], [(0, 1, 1.0), (1, 2, 1.0)], 2, fixed={2: 1},
        kinds=[OpKind.REDUCTION, OpKind.MATMUL, OpKind.ELEMENTWISE], decisions=DECISIONS,
    )  # fmt: skip
    decoder = NodesPlans(MakespanWorkspace(problem))
    unit = decoder.units.unit_of
    options = decoder.options
    assert options["placement"][unit].tolist() == [[0, 1], [0, 0], [np.inf, 0]]
    assert np.isfinite(options["fusion"][unit]).sum(axis=1).tolist() == [1, LEVELS, 1]
    assert np.isfinite(options["schedule"][unit]).all()
    padding = np.concatenate([table[3:] for table in options.values()], axis=1)
    assert np.isfinite(padding).sum(axis=1).max() == 3


def test_a_unit_of_a_class_follows_the_unit_that_places_it():
    """Nodes 0 and 3 share a device, and so do 1 and 2: units of 2 and 3 choose nothing, see what
    the others chose, and have no part in density and entropy."""
    edges = [(i, i + 1, 1.0) for i in range(3)]
    problem = step_problem(
        [1.0] * 4, edges, 2, kinds=[OpKind.MATMUL] * 4, colocation=[5, 7, 7, 5],
        decisions=DECISIONS,
    )  # fmt: skip
    agent, decoder = lively(), NodesPlans(MakespanWorkspace(problem))
    unit = decoder.units.unit_of
    assert decoder.choices["placement"].leader[unit].tolist() == unit[[0, 1, 1, 0]].tolist()
    assert decoder.choices["schedule"].leader[unit].tolist() == unit.tolist()
    actions = drawn_plans(agent, decoder, np.ones(16, np.float32), 1)
    drawn_devices = np.asarray(actions["placement"].chosen)[..., unit]
    assert (drawn_devices[..., [0, 1]] == drawn_devices[..., [3, 2]]).all()
    assert (drawn_devices[..., 0] != drawn_devices[..., 1]).any()
    placed = decoder.decisions(jax.device_get(actions)).device
    assert (placed == drawn_devices[:, -1]).all()
    _, found = judge(agent, decoder, actions)
    assert np.asarray(found["placement"][0].free)[unit].tolist() == [1, 1, 0, 0]
    assert np.asarray(found["schedule"][0].free)[unit].tolist() == [1, 1, 1, 1]


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


def test_levels_decide_what_is_fused():
    """Two matrix products want the same sum: the one of the larger level gets it."""
    problem = step_problem([1.0] * 3, [(0, 2, 1.0), (1, 2, 1.0)], 1,
                           kinds=[OpKind.MATMUL, OpKind.MATMUL, OpKind.ELEMENTWISE],
                           decisions=("fusion",))  # fmt: skip
    decoder = NodesPlans(MakespanWorkspace(problem))
    first, second = decoder.units.unit_of[:2]
    leaders = []
    for levels in ((5, 9), (9, 5), (0, 0)):
        row = [0] * decoder.units.num_units
        row[first], row[second] = levels
        plans = node_decisions(decoder.workspace, decoder.units, chosen({"fusion": [row]}))
        assert plans.kernel_leader is not None
        leaders.append(plans.kernel_leader[0].tolist())
    assert leaders == [[0, 1, 1], [0, 1, 0], [0, 1, 2]]


def test_a_class_goes_where_its_first_unit_goes_and_nodes_go_where_they_can_run():
    """Node 0 is an input and has no unit; node 3 cannot run on device 0."""
    seconds = [[0.0, 1.0, 1.0, np.inf], [0.0, 1.0, 1.0, 1.0]]
    problem = step_problem(
        seconds, [(0, 1, 1.0), (1, 2, 1.0), (2, 3, 1.0)], 2, colocation=[4, 4, -1, -1],
        kinds=[OpKind.INPUT] + [OpKind.MATMUL] * 3, decisions=("placement",),
    )  # fmt: skip
    decoder = NodesPlans(MakespanWorkspace(problem))
    assert decoder.units.unit_of.tolist() == [-1, 0, 1, 2]
    plans = node_decisions(decoder.workspace, decoder.units, chosen({"placement": [[1, 0, 0]]}))
    assert plans.device.tolist() == [[1, 1, 0, 1]]


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
            decoder.workspace, decoder.units, drawn_plans(lively(), decoder, NOISE, seed)
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


def test_what_is_asked_wrongly_is_said():
    agent, decoder = lively(), NodesPlans(MakespanWorkspace(lattice()))
    padded, key = decoder.padded, jax.random.key(0)
    encoded = agent.encode(padded)
    with pytest.raises(PolicyError, match=r"draws among .*; give them"):
        agent.draw(padded, encoded, ("placement",), key, NOISE)
    leaders = jnp.arange(len(padded.real))
    many = {"placement": UnitOptions(jnp.zeros((len(leaders), 128)), leaders)}
    with pytest.raises(PolicyError, match="places on at most 64 devices"):
        agent.draw(padded, encoded, ("placement",), key, NOISE, many)


def test_the_first_iteration_sees_the_reference_plan_unless_told_otherwise(drawn):
    """A policy that carries nothing over sees nothing."""
    _, decoder, actions = drawn
    rows, units = len(decoder.padded.real), decoder.units.num_units
    assert np.asarray(actions["placement"].start)[:, :units].tolist() == [[0] * units] * 4
    forgetful = new_agent(replace(TINY_NODES, carry=False), 0)
    anew = drawn_plans(forgetful, decoder, NOISE, 7)["placement"]
    assert anew.start is None
    assert anew.stay is None
    assert anew.latent is not None
    assert anew.latent.shape == (4, TINY_NODES.directions)
    start = {"placement": np.arange(rows, dtype=np.int32) % 2}
    encoded, key = lively().encode(decoder.padded), jax.random.key(0)
    found = decoder.draw(lively(), encoded, "plan", NOISE, key, start)["placement"]
    assert (np.asarray(found.start) == start["placement"]).all()
    assert np.asarray(found.stay).shape == (4, TINY_NODES.iterations)


def test_graph_level_numbers_have_their_own_density():
    """An untrained policy draws them from N(0, 1): log p = -sum z^2 / 2 but for a constant."""
    agent, decoder = (
        new_agent(TINY_NODES, 0),
        NodesPlans(MakespanWorkspace(lattice())),
    )
    actions = drawn_plans(agent, decoder, NOISE, 3)
    _, found = judge(agent, decoder, actions)
    latent = np.asarray(actions["placement"].latent)
    assert latent.shape == (4, TINY_NODES.directions + 1)
    parts = found["placement"][0].parts(jnp.asarray(decoder.padded.real))
    assert_rounded_alike(np.asarray(parts[1][0]), -0.5 * np.square(latent).sum(axis=1))
    assert len(found["schedule"][0].parts(jnp.asarray(decoder.padded.real))) == 1


def test_a_graph_level_number_says_how_many_units_leave_in_expectation():
    """sqrt(U) exp(1.2 x) of 16 units that can move, at least one, at most half; two cannot."""
    rng = np.random.default_rng(0)
    options, real = np.zeros((20, 4), np.float32), np.ones(20, np.float32)
    options[:, 3] = np.inf
    options[16:18, 1:] = np.inf
    real[18:] = 0.0
    amount = np.array([-3.0, 0.0, 0.5, 3.0], np.float32)
    logits = rng.normal(0.0, 4.0, (4, 20, 4)).astype(np.float32)
    before = rng.integers(0, 3, (4, 20)).astype(np.int32)
    before[:, 16:18] = 0
    given = map(jnp.asarray, (logits, options, before, real, amount))
    stay = np.asarray(jax.jit(staying)(*given))
    weights = np.exp(logits.astype(np.float64))[:, :16, :3]
    for b, expected in enumerate((1.0, 4.0, 4.0 * np.exp(MOVED / 2), 8.0)):
        own = weights[b, range(16), before[b, :16]] * np.exp(stay[b])
        others = weights[b].sum(axis=1) - weights[b, range(16), before[b, :16]]
        assert (others / (own + others)).sum() == pytest.approx(expected, abs=0.01)
