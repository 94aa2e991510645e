"""HDP: features by hand, networks against plain loops, and learning on two chains."""

from dataclasses import replace

import jax
import numpy as np
import pytest
from objectives.conformance import OptimizerConformance
from reference.step_problems import step_problem

from go_rl.core import Budget, Objective, Progress, Status, TrainingError
from go_rl.objectives.makespan.methods.hdp import hdp
from go_rl.objectives.makespan.methods.hdp.config import HDPConfig
from go_rl.objectives.makespan.methods.hdp.features import (
    SIZES,
    TYPES,
    group_features,
    op_features,
)  # fmt: skip
from go_rl.objectives.makespan.methods.hdp.hdp import HDP, Actors, draw, new_learner, update
from go_rl.objectives.makespan.workspace import makespan_workspace
from go_rl.verify.check_plan import check_plan

TINY = HDPConfig(
    groups=4, grouper_hidden=32, hidden=32, groupings=2, placements=2,
    learning_rate=0.01, normalise=False, prior=0.0,
)  # fmt: skip


def two_chains(length: int = 4, **options):
    """Seconds of one each, edges of a fifth: the optimum is one chain on each of two devices."""
    starts = (0, length)
    edges = [(s + i, s + i + 1, 0.2) for s in starts for i in range(length - 1)]
    settings = {"decisions": ("placement",), **options}
    return step_problem([1.0] * (2 * length), edges, 2, **settings)


def actors_of(problem, config=TINY):
    return Actors(config, makespan_workspace(problem))


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


@pytest.mark.slow
def test_garbage_stops_learning_with_a_sentence():
    actors = actors_of(two_chains())
    learner = new_learner(actors, jax.random.key(0))
    drawn = draw(actors, learner, jax.random.key(1), 0.5)
    with pytest.raises(TrainingError, match="gradient of norm nan; lower learning_rate"):
        update(actors, learner, drawn, np.array([1.0, np.nan, 0.0, 0.0]))


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


@pytest.mark.slow
class TestHDPConformance(OptimizerConformance):
    """Slow: nearly every problem has another size, and each size is compiled."""

    objective = Objective.MAKESPAN
    optimizer = HDP(TINY)
