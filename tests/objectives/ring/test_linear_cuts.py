"""The best cuts of one order: against every way of cutting it, with and without triangles."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from reference.random_rings import random_ring
from reference.small_rings import ring_problem

from go_rl.core import Links, Problem, Topology
from go_rl.objectives.common.units import RingUnits, contracted, ring_units
from go_rl.objectives.ring.linear_cuts import LinearCuts, UnequalChips
from go_rl.objectives.ring.orders import candidate_orders
from go_rl.solvers import ring_instance


def units_of(problem: Problem) -> RingUnits:
    return ring_units(ring_instance(problem))


def cut_seconds(units: RingUnits, stage: np.ndarray, link: int) -> float:
    """Seconds on the link behind a stage: all tensors with a consumer further on."""
    busy = 0.0
    for t in range(len(units.tensor_seconds)):
        users = units.user[units.use_ptr[t] : units.use_ptr[t + 1]]
        if stage[units.tensor_source[t]] <= link < max(stage[users]):
            busy += units.tensor_seconds[t]
    return busy + units.latency if busy > 0 else 0.0


def far_edge(units: RingUnits, stage: np.ndarray) -> bool:
    """Whether an edge passes over a stage."""
    rows = np.repeat(np.arange(units.num_units), np.diff(units.succ_ptr))
    return bool((stage[units.succ] - stage[rows] > 1).any())


def brute_force(
    units: RingUnits, order: np.ndarray, triangle: bool, chips: int, weight: float, exactly: bool
) -> float:
    """The least T over all sets of cuts; inf when none is allowed."""
    best, size = np.inf, len(order)
    for count in [chips] if exactly else range(1, chips + 1):
        for cuts in combinations(range(1, size), count - 1):
            stage = np.empty(size, np.int64)
            stage[order] = np.repeat(np.arange(count), np.diff([0, *cuts, size]))
            if np.bincount(stage, units.weight).max() > weight:
                continue
            if triangle and far_edge(units, stage):
                continue
            links = [cut_seconds(units, stage, i) for i in range(count - 1)]
            best = min(best, max(*np.bincount(stage, units.work), *links, 0.0))
    return best


@pytest.mark.parametrize("triangle", [False, True])
@pytest.mark.parametrize("exactly", [False, True])
def test_the_best_cuts_of_an_order_equal_brute_force(triangle, exactly):
    """Expensive and cheap traffic, latency, weights from tight to loose; three orders a problem."""
    found, none = 0, 0
    for seed in range(70):
        problem = random_ring(seed, 8, 4)
        units, chips = units_of(problem), problem.hardware.num_devices
        weight = float(units.weight.max(initial=0.0)) * (1.0 + seed % 3)
        for order, _ in zip(candidate_orders(units, seed), range(3), strict=False):
            truth = brute_force(units, order, triangle, chips, weight, exactly)
            cuts = LinearCuts(units, order, triangle)
            high = float(units.work.sum() + units.tensor_seconds.sum()) + units.latency or 1.0
            value, stage = cuts.best(0.0, high, chips, weight, exactly)
            if stage is None:
                assert truth == np.inf, seed
                none += 1
                continue
            found += 1
            assert value == pytest.approx(truth, rel=2e-4, abs=1e-9), seed
            assert cuts.value(stage) == value
            assert not exactly or stage.max() + 1 == chips
            assert (np.diff(stage[order]) >= 0).all()
    assert min(found, none) > 5


def test_the_best_cuts_for_chips_that_differ_equal_brute_force():
    """Two kinds of chips in any turn, one unit that the second kind cannot run; weights that half a
    chip may not hold. Stage i is on chip i."""
    found = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        units = units_of(random_ring(seed, 7, 3))
        size, chips = units.num_units, 3
        work = np.stack([units.work, units.work * rng.uniform(1.0, 3.0, size)])
        work[1, rng.integers(size)] = 1e9
        unequal = UnequalChips(rng.integers(0, 2, chips).astype(np.int16), work, np.array([2.0, 1]))
        weight = float(units.weight.max(initial=0.0)) * 1.5
        order, truth = np.arange(size, dtype=np.int32), np.inf
        for count in range(1, chips + 1):
            for cuts in combinations(range(1, size), count - 1):
                stage = np.repeat(np.arange(count), np.diff([0, *cuts, size]))
                held = np.bincount(stage, units.weight) / unequal.room[unequal.kind[:count]]
                if held.max() > weight or far_edge(units, stage):
                    continue
                load = np.bincount(stage, work[unequal.kind[stage], np.arange(size)])
                links = [cut_seconds(units, stage, i) for i in range(count - 1)]
                truth = min(truth, max(*load, *links, 0.0))
        value, stage = LinearCuts(units, order, True, unequal).best(0.0, 1e8, chips, weight)
        assert (stage is None) == (truth > 1e8), seed
        if stage is not None:
            found += 1
            assert value == pytest.approx(truth, rel=2e-4, abs=1e-9), seed
    assert found > 20


def chain(work: list[float], busy: list[float], latency: float = 0.0) -> RingUnits:
    edges = [(i, i + 1) for i in range(len(work) - 1)]
    problem = ring_problem(len(work), edges, 4, seconds=work, memory=False)
    links = Links(Topology.RING, 1.0, latency)
    hardware = replace(problem.hardware, links=links)
    return units_of(replace(problem, edge_bytes=np.array(busy), hardware=hardware))


def best_of(units: RingUnits, chips: int, exactly: bool = False) -> float:
    order = np.arange(units.num_units, dtype=np.int32)
    return LinearCuts(units, order, True).best(0.0, 100.0, chips, np.inf, exactly)[0]


def test_a_chain_by_hand():
    """3 3 3 3 with 1, 9, 1 on the links: the middle cut costs 9, the first 9 of work."""
    units = chain([3.0, 3.0, 3.0, 3.0], [1.0, 9.5, 1.0])
    assert best_of(units, 2) == 9.0
    assert best_of(units, 3) == 6.0
    assert best_of(units, 4) == 6.0
    assert best_of(units, 4, exactly=True) == 9.5
    assert best_of(chain([3.0, 3.0], [1.0], latency=4.0), 2) == 5.0


def test_contraction_joins_the_ends_of_expensive_tensors_and_what_lies_between():
    edges = [(0, 1), (1, 2), (0, 2), (2, 3)]
    problem = ring_problem(4, edges, 2, "relay", seconds=[1.0, 2.0, 4.0, 8.0], memory=False)
    graph = replace(problem.graph, edge_output=np.array([0, 1, 0, 0], np.int32))
    problem = replace(problem, graph=graph, edge_bytes=np.array([1.0, 5.0, 1.0, 1.0]))
    whole = units_of(problem)
    assert contracted(whole, 5.0).num_units == 4
    joined = contracted(whole, 4.0)
    assert joined.work.tolist() == [7.0, 8.0]
    assert joined.unit_of.tolist() == [0, 0, 0, 1]
