"""List schedules, reverse depth-first orders, barycentric places and the reference orders."""

import numpy as np
import pytest
from reference.list_order import list_order as twin
from reference.list_order import topological
from reference.small_rings import ring_problem

from go_rl.objectives.common.units import RingUnits
from go_rl.objectives.ring.orders import barycentric, list_order, positions, reverse_depth_first
from go_rl.objectives.ring.reference_orders import REFERENCE_ORDERS, reference_orders
from go_rl.objectives.ring.workspace import RingWorkspace


def random_units(seed: int) -> RingUnits:
    """Up to 20 units; edges between any earlier and later one."""
    rng = np.random.default_rng(seed)
    nodes = int(rng.integers(1, 20))
    density = rng.uniform(0.0, 0.6)
    edges = [(u, v) for v in range(nodes) for u in range(v) if rng.random() < density]
    seconds = rng.integers(1, 9, nodes).astype(float).tolist()
    return RingWorkspace(ring_problem(nodes, edges, 3, "relay", seconds=seconds)).units


@pytest.mark.parametrize("seed", range(15))
def test_a_list_schedule_is_the_twins(seed):
    units = random_units(seed)
    rng = np.random.default_rng(seed)
    for score in (rng.random(units.num_units), rng.integers(0, 3, units.num_units).astype(float)):
        assert list_order(units, score).tolist() == twin(units, score)


def test_a_list_schedule_by_hand():
    """0 -> 2, 1 -> 3: the lowest ready score first, the earlier unit among equals."""
    units = RingWorkspace(ring_problem(4, [(0, 2), (1, 3)], 2, "relay")).units
    assert list_order(units, np.array([2.0, 1.0, 0.0, 3.0])).tolist() == [1, 0, 2, 3]
    assert list_order(units, np.zeros(4)).tolist() == [0, 1, 2, 3]
    assert list_order(units, np.array([0.0, 9.0, 9.0, 0.0])).tolist() == [0, 1, 3, 2]


def test_reverse_depth_first_by_hand():
    """0 -> 3, 1 -> 2 -> 3: from the sink, producers as late as they can be."""
    units = RingWorkspace(ring_problem(4, [(0, 3), (1, 2), (2, 3)], 2, "relay")).units
    assert reverse_depth_first(units, np.arange(4.0)).tolist() == [0, 1, 2, 3]
    assert reverse_depth_first(units, -np.arange(4.0)).tolist() == [1, 2, 0, 3]


def test_positions_by_hand():
    assert positions(np.array([2, 0, 1], np.int32)).tolist() == pytest.approx([0.5, 5 / 6, 1 / 6])
    assert positions(np.zeros(0, np.int32)).tolist() == []


@pytest.mark.parametrize("seed", range(10))
def test_every_reference_order_is_topological(seed):
    units = random_units(seed)
    orders = reference_orders(units)
    assert len(orders) == len(REFERENCE_ORDERS)
    for name, order in zip(REFERENCE_ORDERS, orders, strict=True):
        assert topological(units, order.tolist()), name


@pytest.mark.parametrize("seed", range(10))
def test_barycentric_places_agree_with_the_edges(seed):
    units = random_units(seed)
    place = barycentric(units, np.random.default_rng(seed).random(units.num_units))
    source = np.repeat(np.arange(units.num_units), np.diff(units.succ_ptr))
    assert np.all(place[source] < place[units.succ])
    assert sorted(place) == sorted(positions(np.arange(units.num_units, dtype=np.int32)))


def test_barycentric_places_shorten_edges():
    """Two chains whose nodes alternate by level; side by side, edges are half as long."""
    edges = [(i, i + 2) for i in range(18)]
    units = RingWorkspace(ring_problem(20, edges, 2, "relay")).units
    source = np.repeat(np.arange(20), np.diff(units.succ_ptr))

    def length(place):
        return float((place[units.succ] - place[source]).sum())

    given = positions(np.arange(20, dtype=np.int32))
    assert length(barycentric(units, given)) <= length(given)
    start = np.random.default_rng(0).random(20)
    assert length(barycentric(units, start)) < 1.2 * length(given)


def test_a_convex_mix_of_topological_places_is_consistent_with_the_edges():
    units = random_units(7)
    places = np.stack([positions(order) for order in reference_orders(units)], axis=1)
    source = np.repeat(np.arange(units.num_units), np.diff(units.succ_ptr))
    for weights in np.random.default_rng(0).dirichlet(np.ones(places.shape[1]), 20):
        mixed = places @ weights
        assert np.all(mixed[source] < mixed[units.succ])
