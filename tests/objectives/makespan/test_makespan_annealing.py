"""Annealing of makespan, and the incumbents that it keeps."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from reference.step_networks import holds, operators, priced
from reference.step_problems import step_problem

from go_rl.core import FREE, Budget, OpKind, Problem, Progress, Status
from go_rl.objectives.common.incumbent import Incumbent, finish_plan
from go_rl.objectives.makespan.workspace import MakespanWorkspace, makespan_workspace
from go_rl.objectives.methods import (
    DefaultPlacement,
    GreedyFusion,
    Heft,
    MakespanAnnealing,
    MakespanRandom,
)
from go_rl.verify.check_plan import check_plan


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


def test_an_incumbent_counts_every_plan_and_keeps_the_best():
    problem = step_problem([1.0, 1.0, 5.0], [(1, 2, 1.0)], 2, decisions=("placement", "schedule"))
    workspace, progress = MakespanWorkspace(problem), Progress(Budget(samples=9))
    incumbent = Incumbent(workspace, progress)
    assert incumbent.seconds == np.inf
    assert incumbent.evaluation.status is Status.GAVE_UP
    device = np.array([[0, 0, 1]] * 3)
    priority = np.array([[0, 0, 0], [0, 1, 0], [1, 0, 0]])
    priced = workspace.evaluate(workspace.decisions(device, priority))
    assert priced.seconds.tolist() == [8.0, 7.0, 8.0]
    incumbent.offer_scored(priced)
    assert (incumbent.seconds, progress.samples) == (7.0, 3)
    assert [(p.samples, p.seconds) for p in progress.curve] == [(1, 8.0), (2, 7.0)]
    incumbent.offer_scored(priced, range(2))
    assert progress.samples == 5
    plan = finish_plan(workspace, incumbent, "by-hand", 3, progress, bound=6.5)
    assert (plan.optimizer, plan.seed, plan.samples) == ("by-hand", 3, 5)
    assert plan.device.tolist() == [0, 0, 1]
    assert plan.priority is not None
    assert plan.priority.tolist() == [0, 1, 0]
    assert (plan.value, plan.bound, plan.optimal) == (7.0, 6.5, False)
    assert finish_plan(workspace, incumbent, "by-hand", 3, progress, bound=9.0).optimal


# the pricer calls a constant free on a device that cannot run it; the checker's rule
# `supported` refuses the plan. Profiles do have such nodes (dnn-partitioning: supportedOnFpga).
def test_pricer_and_checker_agree_on_inputs_that_a_device_cannot_run():
    kinds = [OpKind.CONSTANT, OpKind.ELEMENTWISE, OpKind.ELEMENTWISE]
    seconds = [[np.inf, 3.0, 1.0], [0.0, 4.0, 1.0]]
    problem = step_problem(seconds, [(0, 1, 1.0), (1, 2, 1.0)], 2, kinds=kinds)
    workspace, progress = MakespanWorkspace(problem), Progress(Budget(samples=1))
    incumbent = Incumbent(workspace, progress)
    incumbent.offer_scored(workspace.evaluate(workspace.decisions(np.array([[0, 0, 1]]))))
    plan = finish_plan(workspace, incumbent, "by-hand", 0, progress)
    assert check_plan(plan, problem).status is plan.evaluation.status
