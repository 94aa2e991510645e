"""List schedules, reverse depth-first orders, barycentric places and the reference orders."""

import numpy as np
import pytest
from reference.list_order import list_order as twin
from reference.list_order import topological
from reference.small_rings import ring_problem

from go_rl.objectives.common.units import RingUnits
from go_rl.objectives.ring.orders import list_order, reverse_depth_first
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


def test_reverse_depth_first_by_hand():
    """0 -> 3, 1 -> 2 -> 3: from the sink, producers as late as they can be."""
    units = RingWorkspace(ring_problem(4, [(0, 3), (1, 2), (2, 3)], 2, "relay")).units
    assert reverse_depth_first(units, np.arange(4.0)).tolist() == [0, 1, 2, 3]
    assert reverse_depth_first(units, -np.arange(4.0)).tolist() == [1, 2, 0, 3]


@pytest.mark.parametrize("seed", range(10))
def test_every_reference_order_is_topological(seed):
    units = random_units(seed)
    orders = reference_orders(units)
    assert len(orders) == len(REFERENCE_ORDERS)
    for name, order in zip(REFERENCE_ORDERS, orders, strict=True):
        assert topological(units, order.tolist()), name
