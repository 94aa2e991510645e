"""Passes one after the other: which compositions there are, and that none is forgotten."""

import numpy as np
import pytest
from reference.step_networks import holds, operators, priced
from reference.step_problems import random_step, step_problem

from go_rl.core import Budget, OpKind, Problem
from go_rl.objectives.makespan.methods.composed import (
    compositions,
)
from go_rl.objectives.makespan.workspace import makespan_workspace
from go_rl.objectives.methods import Composed, DefaultPlacement, GreedyFusion, Heft, MakespanExpert

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
