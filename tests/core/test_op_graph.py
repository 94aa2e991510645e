"""`OpGraph`: its digest, conversions, and orders."""

from dataclasses import fields, replace

import numpy as np
import pytest
from reference.list_order import list_order as twin
from reference.list_order import topological
from reference.small_rings import ring_problem
from small_graphs import graph_of

from go_rl.core import ElementType, Geometry, OpGraph, OpKind
from go_rl.graphs.readers.graph_builder import Node
from go_rl.objectives.common.units import RingUnits
from go_rl.objectives.ring.orders import list_order, reverse_depth_first
from go_rl.objectives.ring.reference_orders import REFERENCE_ORDERS, reference_orders
from go_rl.objectives.ring.workspace import RingWorkspace


@pytest.fixture
def graph() -> OpGraph:
    nodes = (
        Node(name, "Op", OpKind.MATMUL, flops=float(i), output_bytes=2.0, weight_bytes=3.0,
             output_shape=(2, 3), seconds={"x": 1.0, "y": 2.0}, transfer_seconds=0.5,
             weight_arrays={"w": 3.0}, geometry=Geometry(), element_type=ElementType.FLOAT32)
        for i, name in enumerate("abc")
    )  # fmt: skip
    return graph_of(nodes, [(0, 1, 10.0), (0, 2, 20.0), (1, 2, 30.0)], "g")


ARRAYS = [f.name for f in fields(OpGraph) if "np.ndarray" in str(f.type) and f.name != "seconds"]


def test_the_table_of_arrays_is_complete():
    assert len(ARRAYS) == 21
    assert {"flops", "senders", "edge_output", "transfer_seconds", "geometry"} <= set(ARRAYS)


@pytest.mark.parametrize("name", ARRAYS)
def test_the_digest_changes_with_any_array(name, graph):
    array = getattr(graph, name).copy()
    array.flat[0] = not array.flat[0] if array.dtype == np.bool_ else array.flat[0] + 1
    assert replace(graph, **{name: array}).digest != graph.digest


@pytest.mark.parametrize(
    "change",
    [
        {"names": ("a", "b", "d")},
        {"names": ("a", "b", 3)},
        {"op_type": ("Op", "Op", "Relu")},
        {"transfer_seconds": None},
        {"seconds": {}},
        {"seconds": {"x": np.ones(3)}},
        {"seconds": {"x": np.ones(3), "z": np.full(3, 2.0)}},
        {"seconds": {"x": np.ones(3), "y": np.array([2.0, 2.0, 2.5])}},
        {"seconds": {"y": np.ones(3), "x": np.full(3, 2.0)}},
        {"output_shape": np.array([[2], [3], [2]])},
    ],
)
def test_the_digest_changes_with_the_rest(change, graph):
    assert replace(graph, **change).digest != graph.digest


def test_the_digest_ignores_what_cannot_change_a_plan(graph):
    same = replace(graph, name="other", source=("x", "y", "z"), meta={"k": 1})
    assert same.digest == graph.digest
    shuffled = replace(graph, seconds=dict(reversed(list(graph.seconds.items()))))
    assert shuffled.digest == graph.digest


def test_networkx_keeps_nodes_edges_and_bytes(graph):
    converted = graph.to_networkx()
    assert list(converted.nodes) == [0, 1, 2]
    assert converted.nodes[2] == {"name": "c", "op_type": "Op", "flops": 2.0}
    assert sorted(converted.edges(data="bytes")) == [(0, 1, 10.0), (0, 2, 20.0), (1, 2, 30.0)]


def test_what_is_worked_out_later_is_no_part_of_the_digest(graph):
    before = replace(graph).digest
    later = replace(graph)
    assert later.is_fed.tolist() == [False] * 3
    assert later.predecessors[0].tolist() == [0, 0, 1, 3]
    assert later.digest == before


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
