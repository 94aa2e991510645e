"""Simulated annealing on connected devices: optima of tiny graphs, starts, too little memory."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from reference.step_networks import holds, operators, priced
from reference.step_problems import step_problem

from go_rl.core import FREE, Budget, OpKind, Problem, Status
from go_rl.objectives.makespan.methods.moves import WIDEST, Moves, MoveState, _narrowed
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


def test_annealing_finds_its_way_out_of_too_little_memory():
    """Eight weights of 3 bytes, 7 bytes a device: two on each, and the default puts five on one."""
    problem = step_problem(
        [1.0] * 8,
        devices=4,
        weights=[3.0] * 8,
        memory_bytes=7.0,
        names=[f"one/{n}" for n in range(8)],
    )
    default = DefaultPlacement().optimize(problem, Budget(samples=1), 0)
    assert default.evaluation.status is Status.OUT_OF_MEMORY
    plan = MakespanAnnealing().optimize(problem, Budget(samples=300), 0)
    holds(problem, plan)
    assert plan.value == 2.0
    assert np.bincount(plan.device).tolist() == [2] * 4


def test_annealing_stops_where_nothing_can_be_changed():
    problem = step_problem([1.0, 2.0], devices=2, fixed={0: 0, 1: 1}, decisions=("placement",))
    assert MakespanAnnealing().optimize(problem, Budget(samples=50), 0).samples == 1


def test_annealing_keeps_classes_and_pins():
    problem = priced(operators(4), "p100x4", fixed={3: 2, 9: 1})
    colocation = np.where(np.arange(24) % 5 == 0, 0, FREE).astype(np.int32)
    problem = replace(problem, graph=replace(problem.graph, colocation=colocation))
    plan = MakespanAnnealing().optimize(problem, Budget(samples=60), 2)
    holds(problem, plan)
    assert (plan.device[3], plan.device[9]) == (2, 1)
    assert len(set(plan.device[::5].tolist())) == 1


def test_priorities_keep_their_order_and_room_however_long_the_search():
    """Each shift may double their spread: after some hundreds they would leave 64 bits."""
    workspace = makespan_workspace(priced(operators(1), decisions=("schedule",)))
    moves, rng = Moves(workspace), np.random.default_rng(0)
    zero = np.zeros(workspace.num_nodes, np.int64)
    state, widest = MoveState(zero.astype(np.int16), zero, zero), 0
    for _ in range(3000):
        state = moves.draw(state, rng)
        widest = max(widest, int(state.priority.max()) - int(state.priority.min()))
    assert WIDEST < widest < 2 * WIDEST + 2
    wide = np.array([-(2**62), 2**62, 5, 5])
    assert _narrowed(wide).tolist() == [0, 2, 1, 1]
