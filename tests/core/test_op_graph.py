"""`OpGraph`: the digest that ties plans to graphs, and the conversions."""

from dataclasses import fields, replace

import numpy as np
import pytest

from go_rl.core import ElementType, Geometry, OpGraph, OpKind
from go_rl.graphs.readers.graph_builder import GraphBuilder, Node


@pytest.fixture
def graph() -> OpGraph:
    builder = GraphBuilder("g")
    for i, name in enumerate("abc"):
        builder.add_node(
            Node(name, "Op", OpKind.MATMUL, flops=float(i), output_bytes=2.0, weight_bytes=3.0,
                 output_shape=(2, 3), seconds={"x": 1.0, "y": 2.0}, transfer_seconds=0.5,
                 weight_arrays={"w": 3.0}, geometry=Geometry(), element_type=ElementType.FLOAT32)
        )  # fmt: skip
    for u, v, size in ((0, 1, 10.0), (0, 2, 20.0), (1, 2, 30.0)):
        builder.add_edge(u, v, size)
    return builder.build()


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
