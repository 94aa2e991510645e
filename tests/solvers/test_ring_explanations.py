"""Infeasible problems name the nodes and the rule that clash."""

import pytest
from reference.small_rings import ring_problem

from go_rl.core import Objective, Problem, ProblemError, Status, load_hardware
from go_rl.core.evaluation import STATUS_CODES
from go_rl.costs.models import ProblemOptions, make_problem
from go_rl.solvers import RingSolver, ring_instance

CHAIN = [(0, 1), (1, 2)]
CASES = [
    ("acyclic", ring_problem(4, CHAIN, 2, fixed={1: 1, 2: 0}), ["acyclic", "node"]),
    ("colocation", ring_problem(3, [], 2, colocation=[0, 0, -1], fixed={0: 0, 1: 1}),
     ["colocation", "node 1", "chip 1"]),
    ("memory of one node", ring_problem(2, [], 2, weights=[9.0, 1.0], memory_bytes=5.0),
     ["memory", "node 0"]),
    ("memory in all", ring_problem(3, CHAIN, 2, weights=[4.0, 4.0, 4.0], memory_bytes=5.0),
     ["memory"]),
    ("all chips", ring_problem(4, [(0, 1)], 4, colocation=[0, 0, 0, -1], all_chips=True),
     ["no-skip", "2 blocks for 4 chips", "ties 3 nodes together"]),
    ("a chip that nobody can fill", ring_problem(2, [(0, 1)], 3, fixed={1: 2}),
     ["no-skip", "node 1"]),
    ("triangle", ring_problem(3, [*CHAIN, (0, 2)], 3, fixed={0: 0, 1: 1, 2: 2}), ["triangle"]),
]  # fmt: skip


@pytest.mark.parametrize(("problem", "words"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_infeasible_problems_name_rule_and_node(problem: Problem, words: list[str]):
    samples = RingSolver(problem).sample(batch=2)
    assert [STATUS_CODES[s] for s in samples.status] == [Status.INFEASIBLE] * 2
    for word in words:
        assert word in samples.detail


def test_only_rings_are_solved():
    graph = ring_problem(3, CHAIN, 2).graph
    problem = make_problem(graph, load_hardware("a100x8"), ProblemOptions(Objective.MAX_LOAD))
    with pytest.raises(ProblemError, match="max-load"):
        ring_instance(problem)
