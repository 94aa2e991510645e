"""Simulated annealing on connected devices: optima of tiny graphs, starts, too little memory."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from reference.step_networks import holds, operators, priced
from reference.step_problems import step_problem

from go_rl.core import FREE, Budget, OpKind, Problem
from go_rl.objectives.makespan.workspace import makespan_workspace
from go_rl.objectives.methods import (
    DefaultPlacement,
    GreedyFusion,
    Heft,
    MakespanAnnealing,
    MakespanRandom,
)


def optimum(problem: Problem, levels: int) -> float:
    """The best of all devices, with all priorities and fusion priorities below ``levels``."""
    workspace, nodes = makespan_workspace(problem), problem.graph.num_nodes
    devices = range(problem.hardware.num_devices)
    levelled = {
        name: range(levels if name in problem.decisions else 1) for name in ("schedule", "fusion")
    }
    rows = [
        (*d, *p, *f)
        for d in itertools.product(devices, repeat=nodes)
        for p in itertools.product(levelled["schedule"], repeat=nodes)
        for f in itertools.product(levelled["fusion"], repeat=nodes)
    ]
    device, priority, fusion = np.split(np.array(rows), 3, axis=1)
    found = workspace.evaluate(workspace.decisions(device, priority, fusion))
    return float(found.seconds[found.ok].min())


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    ("decisions", "nodes", "levels"),
    [(("placement",), 7, 1), (("placement", "schedule"), 4, 3), (("placement", "fusion"), 4, 2)],
)
def test_annealing_reaches_the_optimum_of_tiny_graphs(decisions, nodes, levels, seed):
    rng = np.random.default_rng(seed)
    kinds = [(OpKind.ELEMENTWISE, OpKind.MATMUL)[int(i)] for i in rng.integers(0, 2, nodes)]
    edges = [
        (u, v, float(rng.integers(1, 4)))
        for u, v in itertools.combinations(range(nodes), 2)
        if rng.random() < 0.4
    ]
    seconds = rng.integers(1, 6, nodes).astype(float)
    problem = step_problem(seconds, edges, 2, kinds=kinds, decisions=decisions)
    plan = MakespanAnnealing().optimize(problem, Budget(samples=600), seed)
    holds(problem, plan)
    assert plan.value <= optimum(problem, levels) * (1 + 1e-12)


@pytest.mark.parametrize("seed", range(2))
def test_annealing_is_never_worse_than_its_start(seed):
    problem = priced(operators(seed), "p100x4")
    default = DefaultPlacement().optimize(problem, Budget(samples=1), 0)
    assert MakespanAnnealing().optimize(problem, Budget(samples=1), seed).value == default.value
    assert MakespanAnnealing().optimize(problem, Budget(samples=25), seed).value <= default.value
    for start in (
        Heft().optimize(problem, Budget(samples=2), 0),
        MakespanRandom().optimize(problem, Budget(samples=30), 0),
        GreedyFusion().optimize(problem, Budget(samples=1), 0),
    ):
        first = MakespanAnnealing(start).optimize(problem, Budget(samples=1), seed)
        assert first.value == start.value
        assert first.device.tolist() == start.device.tolist()
        after = MakespanAnnealing(start).optimize(problem, Budget(samples=25), seed)
        holds(problem, after)
        assert after.value <= start.value


def test_annealing_keeps_classes_and_pins():
    problem = priced(operators(4), "p100x4", fixed={3: 2, 9: 1})
    colocation = np.where(np.arange(24) % 5 == 0, 0, FREE).astype(np.int32)
    problem = replace(problem, graph=replace(problem.graph, colocation=colocation))
    plan = MakespanAnnealing().optimize(problem, Budget(samples=60), 2)
    holds(problem, plan)
    assert (plan.device[3], plan.device[9]) == (2, 1)
    assert len(set(plan.device[::5].tolist())) == 1
