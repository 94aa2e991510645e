"""Passes one after the other: which compositions there are, and that none is forgotten."""

from dataclasses import replace

import numpy as np
import pytest
from policy.tiny import TINY_DISPATCH
from reference.step_networks import holds, operators, priced
from reference.step_problems import random_step, step_problem

from go_rl.compare.portfolio.portfolio import run
from go_rl.core import Budget, OpKind, Problem, Progress
from go_rl.objectives.makespan.methods.composed import (
    Order,
    composition,
    compositions,
    expert_placement,
)
from go_rl.objectives.makespan.methods.heft import upward_rank
from go_rl.objectives.makespan.workspace import MakespanWorkspace, makespan_workspace
from go_rl.objectives.methods import Composed, DefaultPlacement, GreedyFusion, Heft, MakespanExpert
from go_rl.policy.agent import new_agent

PARTS = (MakespanExpert(), Heft(), GreedyFusion(), DefaultPlacement())
ALL = Budget(samples=24)
"""Five placements, two orders (three for HEFT's), fused or not."""


def branches(**options) -> Problem:
    """Node 0 feeds two chains, 1 2 3 and 4 5 6, of products and what may join them; 7 reads both.

    Every tensor is of one byte, which takes half a second on a link."""
    kinds = [OpKind.MATMUL, *(OpKind.MATMUL, OpKind.ELEMENTWISE, OpKind.MOVEMENT) * 2, OpKind.OTHER]
    pairs = [(0, 1), (1, 2), (2, 3), (0, 4), (4, 5), (5, 6), (3, 7), (6, 7)]
    seconds = [1.0, 3.0, 1.0, 1.0, 3.0, 1.0, 1.0, 1.0]
    edges = [(u, v, 1.0) for u, v in pairs]
    return step_problem(seconds, edges, 2, kinds=kinds, bandwidth=2.0, **options)


def test_branches_run_side_by_side():
    """0, half a second for its tensor, 1.5 to 6.5 on the other device, whose 7 then follows."""
    plan = Composed().optimize(branches(), ALL, 0)
    holds(branches(), plan)
    assert plan.value == 7.5


@pytest.mark.parametrize("seed", range(8))
def test_it_is_no_worse_than_what_it_is_made_of(seed):
    problem = random_step(seed)
    plan = Composed().optimize(problem, ALL, seed)
    holds(problem, plan)
    for part in PARTS:
        assert plan.value <= part.optimize(problem, ALL, seed).value, part.name


def test_what_it_is_made_of_is_among_the_compositions():
    """Device by device, whatever they are worth."""
    problem = priced(operators(4), "p100x4")
    workspace = makespan_workspace(problem)
    made = list(compositions(workspace, 0))
    for part in PARTS:
        plan = part.optimize(problem, Budget(samples=1), 0)
        assert any(
            np.array_equal(one.device[0], plan.device)
            and np.array_equal(one.priority if one.priority is None else one.priority[0],
                               plan.priority)
            and (one.kernel_leader is None) == (plan.fusion_group is None)
            for one in made
        ), part.name  # fmt: skip


@pytest.mark.parametrize(
    ("devices", "decisions", "count"),
    [
        ("p100x4", None, 24),
        ("p100x4", ("placement",), 5),
        ("p100x4", ("placement", "fusion"), 10),
        ("p100x4", ("schedule", "placement"), 12),
        ("p100x4", ("schedule",), 2),
        ("p100x1", None, 4),
        ("p100x1", ("fusion",), 2),
    ],
)
def test_each_composition_is_one_sample(devices, decisions, count, monkeypatch):
    monkeypatch.setattr(Progress, "proved", False)  # an optimum would end the count
    problem = priced(operators(4), devices, decisions=decisions)
    plan = Composed().optimize(problem, Budget(samples=100), 0)
    holds(problem, plan)
    assert plan.samples == count
    for samples in (1, 3):
        few = Composed().optimize(problem, Budget(samples=samples), 0)
        assert few.samples == min(samples, count)


def test_all_three_passes_come_first_and_equal_placements_once():
    workspace = makespan_workspace(branches())
    first = next(compositions(workspace, 0))
    again = composition(workspace, expert_placement(workspace), Order.PLACED, fused=True)
    assert np.array_equal(first.device, again.device)
    assert first.priority is not None
    assert first.kernel_leader is not None
    pinned = makespan_workspace(branches(fixed=dict.fromkeys(range(8), 1)))
    assert len(list(compositions(pinned, 0))) == 6
    assert all((made.device == 1).all() for made in compositions(pinned, 0))


@pytest.mark.parametrize("seed", range(4))
def test_ranks_for_a_placement_are_those_of_the_problem_pinned_to_it(seed):
    problem = random_step(seed)
    workspace = MakespanWorkspace(problem)
    rng = np.random.default_rng(seed)
    device = rng.integers(0, workspace.num_devices, workspace.num_nodes)
    pinned = MakespanWorkspace(replace(problem, fixed=dict(enumerate(device.tolist()))))
    assert upward_rank(workspace, device).tolist() == upward_rank(pinned).tolist()


def test_auto_runs_it_first():
    small = replace(TINY_DISPATCH, sage_layers=0, attention_layers=0)
    agent = new_agent(small, 0)
    result = run(branches(), budget=Budget(samples=60), agent=agent)
    assert [plan.optimizer for plan in result.plans][:3] == ["default", "one-device", "composed"]
    assert result.plans[2].samples == 6
    assert result.best.value <= result.plans[2].value
