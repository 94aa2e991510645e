"""Why an operator stays where it is, against the checker and the simulator move by move."""

from dataclasses import replace

import numpy as np
import pytest
from page_parts import named_graph, planned, problem_on, zoo_plan

import go_rl.report.page.tried_moves as module
from go_rl.core import Objective
from go_rl.core.decisions import Decisions
from go_rl.objectives.kits import kit_of
from go_rl.report.page.tried_moves import Hindrance, tried_moves
from go_rl.verify.rules import legal

CHAIN = named_graph("a", "b", "c", "d")


def reasons(problem, device):
    return [
        {move.device: (move.hindrance, move.reason) for move in moves}
        for moves in tried_moves(problem, planned(problem, device))
    ]


def test_order_keeps_operators_of_a_ring():
    problem = problem_on(CHAIN, "ring3", Objective.RING)
    found = reasons(problem, [0, 0, 1, 1])
    assert found[0][1] == (Hindrance.RULE, "acyclic: its reader 'b' is on chip 0")
    assert found[3][0] == (Hindrance.RULE, "acyclic: its input 'c' is on chip 1")
    assert {*found[0]} == {1}  # there is no chip -1
    assert {*found[3]} == {0, 2}
    hindrance, reason = found[1][1]
    assert hindrance is Hindrance.LOAD
    assert reason.startswith("would raise T_max from ")


@pytest.mark.parametrize(
    ("name", "hardware", "objective"),
    [
        ("ncf", "ring4", Objective.RING),
        ("ncf", "p100x4", Objective.MAKESPAN),
        ("ncf", "ring4", Objective.LATENCY),
    ],
)
def test_every_move_is_as_the_checker_and_the_simulator_say(name, hardware, objective):
    problem, plan = zoo_plan(name, hardware, objective)
    workspace, tried = kit_of(problem).workspace(problem), 0
    for node, moves in enumerate(tried_moves(problem, plan)):
        for move in moves:
            if problem.graph.colocation[node] >= 0:
                continue
            device = plan.device.copy()
            device[node] = move.device
            scored = workspace.evaluate(Decisions(device[None]))
            broken = legal(problem, device, {})
            tried += 1
            if move.hindrance is Hindrance.RULE:
                assert broken
                assert move.reason.startswith(f"{broken[0].rule}") or len(broken) > 1
            elif move.hindrance is Hindrance.LOAD:
                assert not broken
                assert scored.seconds[0] > plan.value
            elif move.hindrance is Hindrance.NOTHING:
                assert not broken
                assert scored.seconds[0] <= plan.value * (1 + 1e-6)
    assert tried > problem.graph.num_nodes / 2


def test_colocated_operators_move_together():
    problem, plan = zoo_plan("ncf", "ring4", Objective.MAX_LOAD)
    together = np.full(problem.graph.num_nodes, -1, np.int32)
    together[:4] = 0
    problem = replace(problem, graph=replace(problem.graph, colocation=together))
    plan = planned(problem, [0] * problem.graph.num_nodes)
    moves = tried_moves(problem, plan)
    assert moves[0] == moves[1] == moves[2] == moves[3]
    assert all(move.hindrance is not Hindrance.RULE for move in moves[0])


def test_inputs_of_a_replayed_plan_run_nowhere():
    problem, plan = zoo_plan("resnet18", "p100x4", Objective.MAKESPAN)
    moves = tried_moves(problem, plan)
    assert all(not moves[n] for n in np.flatnonzero(problem.graph.is_fed))
    assert all(moves[n] for n in np.flatnonzero(~problem.graph.is_fed))


def test_of_a_large_graph_only_the_longest_are_tried(monkeypatch):
    problem, plan = zoo_plan("bert-tiny", "ring4", Objective.MAX_LOAD)
    size = problem.graph.num_nodes + problem.graph.num_edges
    monkeypatch.setattr(module, "MOST_PRICED", 10 * size)
    moves = tried_moves(problem, plan)
    tried = [n for n, each in enumerate(moves) for m in each if m.hindrance != Hindrance.UNKNOWN]
    assert len(tried) == 10
    shortest = min(problem.work[n] for n in tried)
    left = [n for n, each in enumerate(moves) for m in each if m.hindrance == Hindrance.UNKNOWN]
    assert max(problem.work[n] for n in left) <= shortest * (1 + 1e-9)
    assert moves[left[0]][-1].reason == "not tried: only the 10 moves of the longest operators are"
