"""HDP: features by hand, networks against plain loops, and learning on two chains."""

import itertools
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from objectives.conformance import OptimizerConformance
from reference.step_problems import step_problem
from rounding import assert_rounded_alike

from go_rl.core import Budget, Objective, Progress, SearchError, Status, TrainingError
from go_rl.objectives.makespan.methods.hdp import hdp
from go_rl.objectives.makespan.methods.hdp.config import HDPConfig
from go_rl.objectives.makespan.methods.hdp.features import (
    SIZES,
    TYPES,
    equal_runs,
    group_features,
    neighbours,
    op_features,
)  # fmt: skip
from go_rl.objectives.makespan.methods.hdp.grouper import Grouper, draw_groups, new_grouper
from go_rl.objectives.makespan.methods.hdp.hdp import (
    HDP,
    Actors,
    Baseline,
    draw,
    new_learner,
    update,
)
from go_rl.objectives.makespan.methods.hdp.placer import (
    Placer,
    draw_devices,
    lstm,
    lstm_states,
    new_placer,
)
from go_rl.objectives.makespan.workspace import makespan_workspace
from go_rl.verify.check_plan import check_plan

TINY = HDPConfig(
    groups=4, grouper_hidden=32, hidden=32, groupings=2, placements=2,
    learning_rate=0.01, normalise=False, prior=0.0,
)  # fmt: skip
QUIET = jnp.float32(0.0)


def two_chains(length: int = 4, **options):
    """Seconds of one each, edges of a fifth: the optimum is one chain on each of two devices."""
    starts = (0, length)
    edges = [(s + i, s + i + 1, 0.2) for s in starts for i in range(length - 1)]
    settings = {"decisions": ("placement",), **options}
    return step_problem([1.0] * (2 * length), edges, 2, **settings)


def diamond():
    return step_problem([1.0] * 4, [(0, 1, 1.0), (0, 2, 1.0), (1, 3, 3.0), (2, 3, 3.0)], 2)


def actors_of(problem, config=TINY):
    return Actors(config, makespan_workspace(problem))


def test_neighbours_by_hand_nearest_first_and_cut_to_size():
    found = neighbours(diamond().graph, 4)
    expected = [
        [2 / 4, 1, 3 / 4, 1],
        [1 / 4, -1, 4 / 4, 1],
        [4 / 4, 1, 1 / 4, -1],
        [3 / 4, -1, 2 / 4, -1],
    ]
    np.testing.assert_allclose(found, expected)
    assert neighbours(diamond().graph, 2).tolist() == [row[:2] for row in expected]


def test_the_grouper_reads_columns_of_one_spread():
    problem = two_chains(6)
    numbers = op_features(problem.graph, 6).numbers
    assert numbers.shape == (12, SIZES + 6)
    spread = numbers.std(axis=0)
    assert set(np.round(spread, 3)) == {0.0, 1.0}
    assert_rounded_alike(numbers.mean(axis=0), 0.0)


def test_groups_are_the_loop_over_operators_and_edges():
    graph = two_chains(5).graph
    kinds = tuple(f"type{i % 3}" for i in range(10))
    graph = replace(graph, op_type=kinds, output_bytes=np.arange(10.0))
    ops, groups = op_features(graph, 4), 3
    group = np.random.default_rng(0).integers(0, groups, (2, 10))
    found = group_features(graph, ops, group, groups)
    for row, m in enumerate(group):
        for g in range(groups):
            types, sizes = np.zeros(TYPES), np.zeros(SIZES)
            out, into = np.zeros(groups), np.zeros(groups)
            for n in np.flatnonzero(m == g):
                types[ops.op_type[n]] += 1
                sizes += ops.sizes[n]
            for u, v in zip(graph.senders, graph.receivers, strict=True):
                out[m[v]] += m[u] == g
                into[m[u]] += m[v] == g
            parts = [types, sizes, np.concatenate([out, into])]
            expected = np.concatenate([part / (1 + part.max()) for part in parts])
            np.testing.assert_allclose(found[row, g], expected, rtol=1e-6)


def test_published_features_are_raw_numbers():
    """Type, up to five dimensions (-1: none), then positions and directions of neighbours."""
    graph = replace(diamond().graph, output_shape=np.array([[7, 9], [3, 0], [1, 1], [2, 5]]))
    ops = op_features(graph, 2, published=True)
    assert ops.numbers.tolist() == [
        [0, 7, 9, -1, -1, -1, 2, 1],
        [0, 3, 0, -1, -1, -1, 1, -1],
        [0, 1, 1, -1, -1, -1, 4, 1],
        [0, 2, 5, -1, -1, -1, 3, -1],
    ]
    found = group_features(graph, ops, np.array([[0, 0, 1, 1]]), 2, published=True)[0]
    parts = [2, *[0] * (TYPES - 1), 10, 9, *[0] * (SIZES - 2), 1, 2, 1, 0]
    np.testing.assert_allclose(found[0], np.array(parts) / 11, rtol=1e-6)


def test_runs_have_equal_work():
    work = np.array([1.0, 1.0, 2.0, 0.0, 4.0, 1.0, 1.0, 2.0])
    assert equal_runs(work, 3).tolist() == [0, 0, 0, 1, 1, 2, 2, 2]
    assert equal_runs(np.zeros(4), 2).tolist() == [0, 0, 1, 1]


def test_a_prior_starts_the_grouper_from_runs():
    actors = actors_of(two_chains(), replace(TINY, groups=2, prior=50.0))
    drawn = draw(actors, new_learner(actors, jax.random.key(0)), jax.random.key(1), 0.0)
    assert drawn.group.tolist() == 2 * [[0, 0, 0, 0, 1, 1, 1, 1]]


def test_rare_types_share_the_last_number():
    count = TYPES + 6
    problem = step_problem([1.0] * (count + 1))
    names = ("often", *(f"type{i:02}" for i in range(count - 1)), "often")
    kinds = op_features(replace(problem.graph, op_type=names), 4).op_type
    assert kinds[0] == kinds[-1] == 0
    assert kinds[1:TYPES].tolist() == list(range(1, TYPES))
    assert set(kinds[TYPES:-1].tolist()) == {TYPES - 1}


def test_groups_are_drawn_as_often_as_the_softmax_says():
    ops = op_features(diamond().graph, 4)
    grouper = Grouper(5, 8)
    params = new_grouper(grouper, 4, jax.random.key(1))
    drawn = np.asarray(draw_groups(grouper, params, ops, jax.random.key(2), QUIET, 20_000))
    expected = np.asarray(jax.nn.softmax(grouper.apply(params, ops)))
    for n in range(4):
        share = np.bincount(drawn[:, n], minlength=5) / len(drawn)
        np.testing.assert_allclose(share, expected[n], atol=0.02)


def plain_log_prob(placer, params, features, devices):
    """The placer for one grouping and one placement, step by step in NumPy."""
    p, half = jax.tree.map(np.asarray, params["params"]), placer.width // 2

    def sigmoid(x):
        return 1 / (1 + np.exp(-x))

    def cell_step(gates, cell):
        enter, forget, leave, new = np.split(gates, 4)
        cell = sigmoid(forget + 1) * cell + sigmoid(enter) * np.tanh(new)
        return cell, sigmoid(leave) * np.tanh(cell)

    gates = features @ p["encoder_input"]["kernel"] + p["encoder_input"]["bias"]
    states = np.zeros((len(features), placer.width))
    ends = []
    for way, order in enumerate((range(len(features)), reversed(range(len(features))))):
        cell, hidden = np.zeros(half), np.zeros(half)
        for i in order:
            own = gates[i, way * 4 * half : (way + 1) * 4 * half]
            cell, hidden = cell_step(own + hidden @ p["encoder_recurrent"][way], cell)
            states[i, way * half : (way + 1) * half] = hidden
        ends.append((cell, hidden))
    cell, hidden = (np.concatenate([ends[0][k], ends[1][k]]) for k in (0, 1))
    memory, before, total = states @ p["keys"]["kernel"], placer.devices, 0.0
    inputs = p["embedding"] @ p["decoder_input"]["kernel"] + p["decoder_input"]["bias"]
    for device in devices:
        cell, hidden = cell_step(inputs[before] + hidden @ p["decoder_recurrent"], cell)
        scores = np.tanh(hidden @ p["query"] + memory) @ p["score"][:, 0]
        weights = np.exp(scores) / np.exp(scores).sum()
        logits = np.concatenate([hidden, weights @ memory]) @ p["emit"] / placer.temperature
        logits = placer.tanh_constant * np.tanh(logits)
        total += logits[device] - np.log(np.exp(logits).sum())
        before = device
    return total


def test_the_placer_is_the_plain_loop_and_its_probabilities_sum_to_one():
    placer, groups = Placer(2, 8, 0.5, 2.0), 3
    params = new_placer(placer, groups, jax.random.key(0))
    rng = np.random.default_rng(0)
    one = rng.random((1, groups, TYPES + SIZES + 2 * groups), np.float32)
    every = np.array(list(itertools.product(range(2), repeat=groups)), np.int32)
    encoded = placer.apply(params, jnp.repeat(one, len(every), axis=0), method=Placer.encode)
    found = placer.apply(
        params, encoded, jax.random.key(0), QUIET, jnp.asarray(every), method=Placer.judge
    )
    expected = [plain_log_prob(placer, params, one[0], row) for row in every]
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-4)
    assert np.ptp(expected) > 1e-3
    assert np.exp(found).sum() == pytest.approx(1.0, abs=1e-5)


def test_devices_are_judged_under_the_noise_they_were_drawn_with():
    """Logits of deviation 5, mostly noise: what is likely under one key is what it draws."""
    placer, key, noise = Placer(2, 8, 1e-3, 5.0), jax.random.key(7), jnp.float32(3.0)
    params = new_placer(placer, 4, key)
    features = jnp.asarray(np.random.default_rng(1).random((1, 4, TYPES + SIZES + 8), np.float32))
    drawn = draw_devices(placer, params, features, key, noise, 200)
    encoded = placer.apply(params, jnp.repeat(features, 200, axis=0), method=Placer.encode)
    own, other = (
        placer.apply(params, encoded, k, noise, drawn, method=Placer.judge).mean()
        for k in (key, jax.random.key(8))
    )
    assert own > -1.0
    assert other < own - 5.0


def test_the_gradient_of_an_lstm_is_that_of_its_loop():
    rng, width = np.random.default_rng(3), 3
    given = [(5, 2, 4 * width), (width, 4 * width), (2, width), (2, width)]
    given = tuple(jnp.asarray(rng.normal(size=shape), jnp.float32) for shape in given)
    weights = jnp.asarray(rng.normal(size=(2, 5, 2, width)), jnp.float32)

    def plainly(gates, recurrent, cell, hidden):
        states = []
        for now in gates:
            cell, hidden = lstm(now + hidden @ recurrent, cell)
            states.append((cell, hidden))
        return tuple(jnp.stack(each) for each in zip(*states, strict=True))

    def total(states, *given):
        return sum((w * x).sum() for w, x in zip(weights, states(*given), strict=True))

    with jax.disable_jit():
        expected = jax.grad(lambda *g: total(plainly, *g), argnums=(0, 1, 2, 3))(*given)
    found = jax.grad(lambda *g: total(lstm_states, *g), argnums=(0, 1, 2, 3))(*given)
    for one, two in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-5)


def test_an_update_makes_what_earned_more_likelier():
    actors = actors_of(two_chains())
    learner = new_learner(actors, jax.random.key(0))
    drawn = draw(actors, learner, jax.random.key(1), 0.0)
    gain = np.array([3.0, -1.0, -1.0, -1.0])
    after = update(actors, learner, drawn, gain)
    change = judged(actors, after, drawn) - judged(actors, learner, drawn)
    assert np.isfinite(change).all()
    assert (change * gain).sum() > 0


def judged(actors, learner, drawn):
    """[B] log-probabilities of groups and devices together, without noise."""
    logits = actors.grouper.apply(learner.params["grouper"], actors.ops)
    log_probs = np.asarray(jax.nn.log_softmax(logits))
    grouping = np.take_along_axis(log_probs, drawn.group.T, axis=1).sum(axis=0)
    features = jnp.repeat(drawn.features, len(drawn.chosen) // len(drawn.group), axis=0)
    params = learner.params["placer"]
    encoded = actors.placer.apply(params, features, method=Placer.encode)
    chosen = jnp.asarray(drawn.chosen)
    placed = actors.placer.apply(params, encoded, drawn.keys[1], QUIET, chosen, method=Placer.judge)
    return np.repeat(grouping, len(placed) // len(grouping)) + np.asarray(placed)


def test_garbage_stops_learning_with_a_sentence():
    actors = actors_of(two_chains())
    learner = new_learner(actors, jax.random.key(0))
    drawn = draw(actors, learner, jax.random.key(1), 0.5)
    with pytest.raises(TrainingError, match="gradient of norm nan; lower learning_rate"):
        update(actors, learner, drawn, np.array([1.0, np.nan, 0.0, 0.0]))


def test_the_baseline_by_hand():
    baseline, every = Baseline(0.9), np.array([True, True])
    assert baseline.advantage(np.array([-4.0, -2.0]), every).tolist() == [-1.0, 1.0]
    assert baseline.mean == -3.0
    assert baseline.advantage(np.array([-1.0, -2.0]), every).tolist() == [2.0, 1.0]
    assert baseline.mean == pytest.approx(0.9 * -3.0 + 0.1 * -1.5)
    before = baseline.mean
    only = baseline.advantage(np.array([-1.0, -10.0]), np.array([True, False]))
    assert only.tolist() == [-1.0 - before, 0.0]
    assert baseline.advantage(np.array([-10.0, -10.0]), ~every).tolist() == [0.0, 0.0]


def test_a_baseline_that_starts_at_a_failure_praises_whatever_fits():
    baseline = hdp.new_baseline(replace(TINY, failure_first=True))
    assert baseline.advantage(np.array([-1.0]), np.array([True])).tolist() == [9.0]
    assert baseline.mean == pytest.approx(-9.1)


def test_normalised_advantages_by_hand():
    baseline, every = Baseline(0.9, -3.0, normalise=True), np.array([True, True])
    assert baseline.advantage(np.array([-5.0, -1.0]), every).tolist() == [-1.0, 1.0]
    found = baseline.advantage(np.array([-3.0, -2.0]), every)
    assert found == pytest.approx(np.array([0.0, 1.0]) / np.sqrt(0.9 * 4.0 + 0.1 * 0.5))
    still = Baseline(0.9, normalise=True).advantage(np.array([-1.0, -1.0]), every)
    assert still.tolist() == [0.0, 0.0]


def test_without_a_learning_rate_nothing_changes_but_the_draws(monkeypatch):
    seen = []
    monkeypatch.setattr(hdp, "update", None)
    plan = HDP(replace(TINY, learning_rate=0.0), report=seen.append).optimize(
        two_chains(), Budget(samples=21), 0
    )
    assert plan.samples == 21
    assert sum(len(each.seconds) for each in seen) == 20
    assert plan.value == min(8.0, *(each.seconds.min() for each in seen))


def test_rewards_are_roots_and_failures_have_their_own():
    problem = two_chains(2, memory_bytes=2.5, weights=[1.0] * 4)
    workspace = makespan_workspace(problem)
    apart, together = [0, 0, 1, 1], [0, 0, 0, 0]
    priced = workspace.evaluate(workspace.decisions(np.array([apart, together])))
    found = hdp.rewards(HDPConfig(), priced, priced.ok)
    assert found.tolist() == [-np.sqrt(2.0), -10.0]


@pytest.mark.slow
def test_two_chains_are_learned(monkeypatch):
    seen, rewards = [], hdp.rewards
    monkeypatch.setattr(Progress, "proved", False)  # learn on after the optimum
    monkeypatch.setattr(
        hdp, "rewards", lambda *args: seen.append(float(args[1].seconds.mean())) or rewards(*args)
    )
    plan = HDP(TINY).optimize(two_chains(), Budget(samples=1600), 0)
    assert plan.value <= 1.05 * 4.0
    quarter = len(seen) // 4
    assert np.mean(seen[-quarter:]) < 0.85 * np.mean(seen[:quarter])
    assert plan.curve[0].seconds == 8.0


@pytest.mark.parametrize("samples", [1, 2, 5, 6, 11])
def test_budgets_are_kept_to_the_sample_and_start_with_the_default(samples):
    problem = two_chains()
    plan = HDP(TINY).optimize(problem, Budget(samples=samples), 0)
    assert plan.samples == samples
    assert (plan.curve[0].samples, plan.curve[0].seconds) == (1, 8.0)
    assert plan.value <= 8.0
    assert (plan.priority, plan.fusion_group) == (None, None)
    assert check_plan(plan, problem).status is Status.OK


@pytest.mark.parametrize(
    "problem",
    [step_problem([2.0], devices=1), two_chains(2, fixed={0: 0, 1: 0, 2: 1, 3: 1})],
    ids=["one device", "all pinned"],
)
def test_nothing_is_drawn_where_nothing_is_to_decide(problem):
    plan = HDP(TINY).optimize(problem, Budget(samples=20), 0)
    assert (plan.samples, plan.value) == (1, 2.0)


@pytest.mark.parametrize(
    ("seconds", "drawing", "learning", "draws", "ends"),
    [(1.0, 0.05, 0.25, 4, 0.95), (0.5, 0.06, 0.4, 1, 0.06), (0.5, 0.2, 1.0, 1, 0.2)],
    ids=["the last draw teaches nothing", "an update would not pay", "loaded machine"],
)
def test_what_does_not_fit_into_the_budget_is_not_begun(
    monkeypatch, seconds, drawing, learning, draws, ends
):
    clock, drawn, updated = [0.0], hdp.draw, hdp.update

    def slow(call, spent):
        def inner(*args):
            clock[0] += spent
            return call(*args)

        return inner

    HDP(TINY).prepare(two_chains())
    monkeypatch.setattr(Progress, "wall_seconds", property(lambda self: clock[0]))
    monkeypatch.setattr(hdp, "draw", slow(drawn, drawing))
    monkeypatch.setattr(hdp, "update", slow(updated, learning))
    plan = HDP(TINY).optimize(two_chains(), Budget(seconds=seconds), 0)
    assert clock[0] == pytest.approx(ends)
    assert plan.samples == 1 + draws * TINY.groupings * TINY.placements


def test_equally_large_graphs_share_compiled_code():
    compiled = (
        new_grouper, new_placer, draw_groups, draw_devices,
        hdp.grouper_gradient, hdp.placer_gradient, hdp.descend,
    )  # fmt: skip
    HDP(TINY).optimize(two_chains(), Budget(samples=10), 0)
    before = [f._cache_size() for f in compiled]
    other = step_problem([float(n) for n in range(8)], [(0, 7, 1.0)], 2, names=list("abcdefgh"))
    HDP(TINY).optimize(other, Budget(samples=10), 1)
    assert [f._cache_size() for f in compiled] == before


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"groups": 0}, "groups must be a whole number >= 1, not 0"),
        ({"placements": True}, "placements must be a whole number >= 1, not True"),
        ({"noise_updates": -1}, "noise_updates must be a whole number >= 0"),
        ({"hidden": 33}, "hidden must be even, not 33"),
        ({"adjacency": 7}, "adjacency must be even"),
        ({"learning_rate": -0.1}, "learning_rate must be finite and >= 0"),
        ({"temperature": float("nan")}, "temperature must be finite and > 0"),
        ({"failing_seconds": float("inf")}, "failing_seconds must be finite"),
        ({"noise": -0.1}, "noise must be finite and >= 0"),
        ({"baseline_decay": 1.5}, "baseline_decay must be at most 1"),
    ],
)
def test_a_wrong_configuration_says_what_is_wrong(wrong, message):
    with pytest.raises(SearchError, match=message):
        HDPConfig(**wrong)


@pytest.mark.slow
class TestHDPConformance(OptimizerConformance):
    """Slow: nearly every problem has another size, and each size is compiled."""

    objective = Objective.MAKESPAN
    optimizer = HDP(TINY)
