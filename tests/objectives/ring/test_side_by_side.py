"""Stages of several chips: optima of stars by hand, legality and loads on random graphs."""

from itertools import pairwise

import numpy as np
import pytest
from reference.layered import layered_ring
from reference.random_rings import random_ring
from reference.ring_optimum import optimum
from reference.small_rings import ring_problem

from go_rl.core import Budget, Problem
from go_rl.objectives.methods import LinearDP
from go_rl.objectives.ring.linear_cuts import LinearCuts
from go_rl.objectives.ring.orders import candidate_orders
from go_rl.objectives.ring.side_by_side import SideBySide
from go_rl.objectives.ring.workspace import ring_workspace
from go_rl.verify.check_plan import check_plan


def star(works: list[float], chips: int, length: int = 1) -> Problem:
    """A source, one branch of ``length`` nodes for each of ``works``, a sink; traffic is free."""
    sink = 1 + length * len(works)
    edges, seconds = [], [1.0]
    for b, work in enumerate(works):
        first = 1 + b * length
        chain = [0, *range(first, first + length), sink]
        edges += list(pairwise(chain))
        seconds += [work / length] * length
    seconds.append(1.0)
    return ring_problem(sink + 1, sorted(edges), chips, "strict", seconds=seconds, memory=False)


def stages(problem: Problem, seconds: float, number: int = 0) -> np.ndarray | None:
    workspace = ring_workspace(problem)
    orders = candidate_orders(workspace.units, 0)
    order = [next(orders) for _ in range(number + 1)][-1]
    wide = SideBySide(LinearCuts(workspace.units, order, True), workspace.chips)
    return wide.stages(seconds, workspace.weight_limit)


def test_branches_of_a_star_get_chips_of_their_own():
    """Four branches of 5 between ends of 1. Three chips: 11, two branches and an end on each of
    two. Four: 10, two branches on each of the two between the ends. Six: 5."""
    assert LinearDP().optimize(star([5.0] * 4, 3), Budget(samples=20), 0).value == 11.0
    assert LinearDP().optimize(star([5.0] * 4, 4), Budget(samples=20), 0).value == 10.0
    assert LinearDP().optimize(star([5.0] * 4, 6), Budget(samples=20), 0).value == 5.0


@pytest.mark.parametrize("seed", range(16))
def test_stages_are_legal_and_within_the_limit(seed):
    """FIX keeps every proposal as it is: nothing had to be repaired."""
    rng = np.random.default_rng(seed)
    problem = layered_ring(seed, 24, 6, "strict") if seed % 2 else random_ring(seed, 12, 5)
    if not problem.rules.triangle or problem.fixed or problem.all_chips or problem.memory:
        return
    workspace = ring_workspace(problem)
    units = workspace.units
    if not workspace.solver.feasible_so_far or units.num_units == 0:
        return
    orders = candidate_orders(units, seed)
    for _ in range(9):
        cuts = LinearCuts(units, next(orders), True)
        limit = float(units.work.max() + rng.random() * units.work.sum())
        found = SideBySide(cuts, workspace.chips).stages(limit, workspace.weight_limit)
        if found is None:
            continue
        assert np.bincount(found, units.work).max() <= limit * (1 + 1e-9)
        nodes = workspace.nodes_of(found[units.unit_of])
        legal, *_ = workspace.repair(nodes)
        assert legal is not None
        held = workspace.solver.instance.block_of >= 0
        assert legal.device[0][held].tolist() == nodes[held].tolist()


@pytest.mark.parametrize("seed", range(4))
def test_no_plan_is_better_than_the_optimum(seed):
    rng = np.random.default_rng(seed)
    problem = star(rng.integers(1, 6, 4).astype(float).tolist(), 5)
    plan = LinearDP().optimize(problem, Budget(samples=60), 0)
    best = optimum(problem)
    assert best is not None
    assert check_plan(plan, problem).status.ok
    assert plan.bound <= best <= plan.value
    assert plan.value <= best * 1.34
