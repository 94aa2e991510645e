"""Lower bounds of ring plans."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from reference.ring_optimum import optimum
from reference.small_rings import ring_problem

from go_rl.core import Budget, Links, Problem, Topology
from go_rl.objectives.common.units import bound_units
from go_rl.objectives.methods import IdealDP
from go_rl.objectives.ring.bounds import ring_bound
from go_rl.objectives.ring.chained_edges import chained_between
from go_rl.objectives.ring.triangle_bound import half_between, parts_too_little
from go_rl.solvers import ring_instance

pytestmark = pytest.mark.usefixtures("unchecked_types")


def chain(work: list[float], chips: int, rules: str = "strict", **options) -> Problem:
    edges = [(i, i + 1) for i in range(len(work) - 1)]
    return ring_problem(len(work), edges, chips, rules, seconds=work, memory=False, **options)


def bound_of(problem: Problem) -> float:
    return ring_bound(ring_instance(problem))


def test_a_tensor_too_expensive_to_send_joins_its_ends():
    problem = replace(
        chain([3.0, 3.0, 3.0], 3),
        edge_bytes=np.array([100.0, 0.1]),
        hardware=replace(chain([1.0], 3).hardware, links=Links(Topology.RING, 1.0)),
    )
    assert bound_of(problem) == pytest.approx(6.0, rel=1e-5)


def test_latency_is_counted_once_a_link_not_once_a_tensor():
    """Two tensors leave node 0: 1 + 1 + latency 3 = 5 s on the link, not 8; work is 6 a chip."""
    problem = ring_problem(3, [(0, 1), (0, 2)], 2, "relay", seconds=[6.0, 3.0, 3.0], memory=False)
    problem = replace(
        problem,
        graph=replace(problem.graph, edge_output=np.array([0, 1], np.int32)),
        hardware=replace(problem.hardware, links=Links(Topology.RING, 1.0, 3.0)),
        edge_bytes=np.array([1.0, 1.0]),
    )
    assert optimum(problem) == 6.0
    plan = IdealDP().optimize(problem, Budget(samples=20), 0)
    assert (plan.value, plan.bound) == (6.0, 6.0)


def test_under_the_triangle_rule_an_edge_keeps_what_lies_between_on_two_chips():
    """0 -> 1 -> 2 -> 3 and 0 -> 3 of 2 s each: 8 s on two chips; without the rule 2 s each."""
    edges = [(0, 1), (1, 2), (2, 3), (0, 3)]
    strict, relay = (ring_problem(4, edges, 4, r, seconds=[2.0] * 4) for r in ("strict", "relay"))
    assert bound_of(strict) == pytest.approx(4.0)
    assert bound_of(relay) == pytest.approx(2.0)
    assert (optimum(strict), optimum(relay)) == (4.0, 2.0)


def test_no_work_has_no_bound():
    assert bound_of(chain([0.0, 0.0], 2)) == 0.0
    assert bound_of(chain([0.0, 0.0], 2, all_chips=True)) == 0.0


def test_a_node_that_no_chip_can_run_leaves_no_plan():
    assert bound_of(chain([1.0, np.inf], 2)) == np.inf


def star(
    branches: int, length: int, chips: int, work: list[float], sizes: list[float], rules: str
) -> Problem:
    """A source, branches of ``length`` nodes each, and a sink; ``sizes`` of each edge in bytes, at
    one byte a second; all that a node sends is one tensor."""
    nodes, edges = 2 + branches * length, []
    for b in range(branches):
        chain = [0, *range(1 + b * length, 1 + (b + 1) * length), nodes - 1]
        edges += list(itertools.pairwise(chain))
    problem = ring_problem(nodes, sorted(edges), chips, rules, seconds=work, memory=False)
    links = Links(Topology.RING, 1.0)
    own = np.array([sizes[u] for u in problem.graph.senders])
    return replace(problem, edge_bytes=own, hardware=replace(problem.hardware, links=links))


def test_an_edge_beside_a_path_holds_it_on_two_chips():
    """0 -> 4 beside 0 -> 1 -> 2 -> 3 -> 4, each of 2 s: 10 s on two chips."""
    edges = [(0, 1), (0, 4), (1, 2), (2, 3), (3, 4)]
    problem = ring_problem(5, edges, 5, "strict", seconds=[2.0] * 5, memory=False)
    units = bound_units(ring_instance(problem))
    assert half_between(units) == 5.0
    assert parts_too_little(units, 4.9)
    assert not parts_too_little(units, 5.1)


@pytest.mark.parametrize("rules", ["strict", "replicate"])
@pytest.mark.parametrize("seed", range(15))
def test_no_legal_plan_is_faster(seed, rules):
    rng = np.random.default_rng(seed)
    branches, length = ((2, 2), (3, 1), (4, 1))[seed % 3]
    nodes = 2 + branches * length
    work = rng.integers(0, 7, nodes).astype(float).tolist()
    work[0] += rules == "replicate"  # not worth a copy: too many plans to try them all
    problem = star(branches, length, 4, work, rng.integers(0, 7, nodes).tolist(), rules)
    if rng.random() < 0.4:
        problem = replace(
            problem, hardware=replace(problem.hardware, links=Links(Topology.RING, 1.0, 2.0))
        )
    best = optimum(problem)
    assert best is not None
    assert bound_of(problem) <= best * (1 + 1e-9)


@pytest.mark.parametrize("rules", ["strict", "replicate"])
def test_chained_edges_hold_against_brute_force(rules):
    """Random graphs with many edges beside paths."""
    raised = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        pairs = [(u, v) for u in range(7) for v in range(u + 1, 7)]
        edges = [e for e in pairs if rng.random() < 0.35]
        work = rng.integers(1, 6, 7).astype(float).tolist()
        problem = ring_problem(7, edges, 4, rules, seconds=work, memory=False)
        best = optimum(problem)
        if best is None:
            continue
        units = bound_units(ring_instance(problem))
        chained = chained_between(units, 4)
        assert chained <= best * (1 + 1e-9), seed
        raised += chained > half_between(units)
    assert raised >= (3 if rules == "strict" else 1)
