"""Passes one after the other: which compositions there are, and that none is forgotten."""

import pytest
from reference.step_networks import holds
from reference.step_problems import random_step

from go_rl.core import Budget
from go_rl.objectives.methods import Composed, DefaultPlacement, GreedyFusion, Heft, MakespanExpert

PARTS = (MakespanExpert(), Heft(), GreedyFusion(), DefaultPlacement())
ALL = Budget(samples=24)
"""Five placements, two orders (three for HEFT's), fused or not."""


@pytest.mark.parametrize("seed", range(8))
def test_it_is_no_worse_than_what_it_is_made_of(seed):
    problem = random_step(seed)
    plan = Composed().optimize(problem, ALL, seed)
    holds(problem, plan)
    for part in PARTS:
        assert plan.value <= part.optimize(problem, ALL, seed).value, part.name
