"""Local search on a ring: legal wherever it goes, exact prices, optima of small graphs."""

from dataclasses import replace

import numpy as np
import pytest
from reference.layered import layered_ring
from reference.random_rings import random_ring
from reference.ring_optimum import optimum
from reference.small_rings import ring_problem

from go_rl.core import Budget
from go_rl.objectives.methods import RingLocalSearch
from go_rl.objectives.ring.methods.relocation import BEST, SCORE, VALUE, new_walk, walk
from go_rl.objectives.ring.workspace import ring_workspace
from go_rl.verify.check_plan import check_plan


@pytest.mark.parametrize("seed", range(12))
def test_wherever_it_walks_plans_are_legal_and_priced_as_the_simulator_does(seed):
    """Hot enough to wander: FIX keeps every partition as it is, and T_max agrees."""
    problem = layered_ring(seed, 24, 6, "strict") if seed % 2 else random_ring(seed, 10, 4)
    problem = replace(problem, rules=replace(problem.rules, replicate=False))
    workspace = ring_workspace(problem)
    if not workspace.solver.feasible_so_far or workspace.units.num_units < 2:
        return
    legal, evaluation, _ = workspace.repair(workspace.work_fill)
    if legal is None or not evaluation.status.ok:
        return
    instance, alike = workspace.solver.instance, len(problem.seconds) == 1
    state = new_walk(instance.net, legal.device[0][instance.leader], seed)
    for _ in range(30):
        walk(instance.net, workspace.units, state, 1.0, 20)
        nodes = workspace.nodes_of(state.chip)
        kept, evaluation, _ = workspace.repair(nodes)
        assert kept is not None
        assert kept.device[0].tolist() == nodes.tolist()
        if alike and evaluation.status.ok:
            assert state.state[VALUE] == pytest.approx(evaluation.seconds, rel=1e-9)
        assert state.state[BEST] <= state.state[VALUE]
        assert np.isfinite(state.state[SCORE])


def test_it_reaches_the_optimum_of_most_small_graphs():
    """It is never below; under the triangle rule, moves between good plans may not exist."""
    reached = {"strict": 0, "relay": 0}
    for seed in range(12):
        rng = np.random.default_rng(seed)
        edges = [(u, v) for u in range(7) for v in range(u + 1, 7) if rng.random() < 0.35]
        work = rng.integers(1, 9, 7).astype(float).tolist()
        for rules in reached:
            problem = ring_problem(7, edges, 4, rules, seconds=work, memory=False)
            plan = RingLocalSearch().optimize(problem, Budget(samples=5000), seed)
            best = optimum(problem)
            assert best is not None
            assert check_plan(plan, problem).status.ok
            assert best <= plan.value <= 1.5 * best
            reached[rules] += plan.value <= best * (1 + 1e-9)
    assert reached["relay"] >= 9
    assert reached["strict"] >= 7
