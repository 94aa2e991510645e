"""Verdicts on rings, and how they are explained."""

from collections import Counter
from itertools import islice

import numpy as np
import pytest
from reference.random_rings import random_ring
from reference.ring_optimum import optimum
from reference.ring_rules import copied_by, partitions
from reference.small_rings import broken, ring_problem

from go_rl.core import Objective, Problem, ProblemError, Status, load_hardware
from go_rl.core.evaluation import STATUS_CODES
from go_rl.costs.models import ProblemOptions, make_problem
from go_rl.solvers import RingSolver, SolverOptions, ring_instance
from go_rl.solvers.enumeration import all_partitions
from go_rl.solvers.replication import replicated_nodes
from go_rl.solvers.stage_costs import other_copies
from go_rl.solvers.twins.cp_sat import first_partition
from go_rl.verify.rules import legal

ONE_THREAD = SolverOptions(threads=1)


def truth(problem: Problem) -> set[tuple[int, ...]]:
    return set(partitions(problem, copied_by(replicated_nodes(problem))))


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    "chunk", [0, *(pytest.param(i, marks=pytest.mark.slow) for i in range(1, 20))]
)
def test_verdict_equals_brute_force(chunk):
    """250 problems of up to seven nodes on up to four chips, all rule sets; 5,000 in all."""
    seen = Counter()
    for seed in range(250 * chunk, 250 * chunk + 250):
        problem = random_ring(seed)
        solver = RingSolver(problem, ONE_THREAD)
        samples = solver.sample(seed=seed)
        status = STATUS_CODES[samples.status[0]]
        copied = copied_by(solver.instance.replicated)
        exists = next(partitions(problem, copied), None) is not None
        assert (status is Status.OK) == exists, (seed, status)
        seen[status] += 1
        if exists:
            assert broken(problem, samples.device[0]) == (), seed
        elif not (copied or other_copies(solver.instance).any()):
            assert status is Status.INFEASIBLE, seed
        elif status is Status.INFEASIBLE:
            assert optimum(problem) in (np.inf, None), seed  # None: too many plans to list
    assert seen[Status.OK] > 160
    assert seen[Status.INFEASIBLE] > 8
    assert seen[Status.GAVE_UP] < 8


def test_infeasible_is_not_claimed_where_fewer_copies_would_do():
    """Nodes 0 and 1 are copied to their readers; at home they could have filled chips 0 and 1."""
    problem = ring_problem(
        4, [(0, 2), (1, 2), (2, 3)], 3, "default", seconds=[0.0, 0.0, 1.0, 1.0], fixed={2: 1, 3: 2}
    )
    assert replicated_nodes(problem).tolist() == [True, True, False, False]
    assert legal(problem, np.array([0, 0, 1, 2]), {}) == ()
    assert STATUS_CODES[RingSolver(problem).sample().status[0]] is Status.GAVE_UP


def test_infeasible_is_claimed_where_copies_do_not_matter():
    """Chip 1 holds 100 bytes; both its pinned nodes together need 120, whatever is copied."""
    problem = ring_problem(
        3, [(0, 1), (0, 2)], 2, "default", weights=[1.0, 60.0, 60.0], seconds=[0.0, 1.0, 1.0],
        fixed={1: 1, 2: 1},
    )  # fmt: skip
    assert replicated_nodes(problem).tolist() == [True, False, False]
    samples = RingSolver(problem).sample()
    assert STATUS_CODES[samples.status[0]] is Status.INFEASIBLE
    assert "no-skip" in samples.detail or "memory" in samples.detail


def test_infeasible_is_claimed_when_all_weights_exceed_all_memory():
    """Chips hold 100 bytes each; nodes 0 and 1 need 250 together, and node 0 may be copied."""
    problem = ring_problem(
        3, [(0, 1), (0, 2)], 2, "default", weights=[150.0, 100.0, 0.0], seconds=[0.0, 1.0, 1.0]
    )
    assert STATUS_CODES[RingSolver(problem).sample().status[0]] is Status.INFEASIBLE


def test_python_constraint_lists_what_brute_force_lists():
    sizes = []
    for seed in range(100):
        problem = random_ring(seed, 6, 3)
        expected = truth(problem)
        assert all_partitions(problem) == expected, seed
        sizes.append(len(expected))
    assert min(sizes) == 0
    assert max(sizes) > 50


def test_python_constraint_stops_at_the_limit():
    problem = next(p for p in map(random_ring, range(100)) if len(truth(p)) > 10)
    assert len(all_partitions(problem, 7)) == 7


def test_cp_sat_agrees_with_brute_force():
    seen = Counter()
    for seed in range(60):
        problem = random_ring(seed)
        found = first_partition(ring_instance(problem), seconds=20.0, workers=1)
        copied = copied_by(replicated_nodes(problem))
        exists = bool(list(islice(partitions(problem, copied), 1)))
        assert found.status is (Status.OK if exists else Status.INFEASIBLE), seed
        seen[found.status] += 1
        if found.device is not None:
            assert broken(problem, found.device) == (), seed
    assert seen[Status.INFEASIBLE] > 2


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
def test_infeasible_problems_name_rule_and_node(problem, words):
    samples = RingSolver(problem).sample(batch=2)
    assert [STATUS_CODES[s] for s in samples.status] == [Status.INFEASIBLE] * 2
    for word in words:
        assert word in samples.detail


def test_only_rings_are_solved():
    graph = ring_problem(3, CHAIN, 2).graph
    problem = make_problem(graph, load_hardware("a100x8"), ProblemOptions(Objective.MAX_LOAD))
    with pytest.raises(ProblemError, match="max-load"):
        ring_instance(problem)
