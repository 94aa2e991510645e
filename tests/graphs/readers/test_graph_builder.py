"""`GraphBuilder`: order, checks and the messages of what it refuses."""

import re
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_graphs import graph_of

from go_rl.core import FREE, NO_DIM, GraphError, OpKind, check_graph
from go_rl.graphs.readers.graph_builder import GraphBuilder, Node


def node(name, **features):
    return Node(name, "Op", OpKind.OTHER, **features)


def tied_fields(nodes, arrays, sizes):
    return {
        "tied_node": np.array(nodes, np.int32),
        "tied_array": np.array(arrays, np.int32),
        "tied_bytes": np.array(sizes),
    }


def built(names, edges, **features):
    builder = GraphBuilder("g")
    for name in names:
        builder.add_node(node(name, **features))
    for u, v in edges:
        builder.add_edge(builder.number_of(u), builder.number_of(v), 4.0)
    return builder.build()


def test_nodes_are_sorted_stably():
    graph = built("dcba", [("a", "c"), ("b", "c")])
    assert graph.names == ("d", "b", "a", "c")
    assert graph.senders.tolist() == [1, 2]
    assert graph.receivers.tolist() == [3, 3]
    assert built("abcd", [("a", "d")]).names == tuple("abcd")


def test_every_feature_follows_its_node():
    late = Node(
        7, "Conv", OpKind.CONVOLUTION, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, {"w": 4.0}, (8, 9), 3,
        True, True, "net/conv", {"gpu": 0.5}, 0.25,
    )  # fmt: skip
    first = node("first", seconds={"gpu": float("inf")})
    graph = graph_of([late, first], [(1, 0, 12.0, 2)], meta={"format": "hand"})
    assert graph.names == ("first", 7)
    assert graph.index == {"first": 0, 7: 1}
    assert graph.op_type == ("Op", "Conv")
    assert graph.source == ("", "net/conv")
    assert graph.kind.tolist() == [OpKind.OTHER, OpKind.CONVOLUTION]
    columns = ("flops", "bytes_accessed", "output_bytes", "weight_bytes")
    columns += ("output_itemsize", "weight_itemsize")
    assert [getattr(graph, c)[1] for c in columns] == [1, 2, 3, 4, 5, 6]
    assert graph.output_shape.tolist() == [[NO_DIM, NO_DIM], [8, 9]]
    assert graph.colocation.tolist() == [FREE, 3]
    assert graph.is_backward.tolist() == [False, True]
    assert graph.is_output.tolist() == [False, True]
    assert graph.seconds["gpu"].tolist() == [float("inf"), 0.5]
    assert graph.transfer_seconds is not None
    assert graph.transfer_seconds.tolist() == [0.0, 0.25]
    assert (graph.edge_bytes.tolist(), graph.edge_output.tolist()) == ([12.0], [2])
    assert graph.meta == {"format": "hand"}


def test_weights_are_tied_array_by_array():
    """w is read by 0, 1, 2 and 5, b by 1 and 5; v by one node; a "w" of another size is another."""
    reads = [{"w": 8.0}, {"w": 8.0, "b": 2.0}, {"w": 8.0}, {}, {"v": 4.0}, {"b": 2.0, "w": 8.0},
             {"w": 3.0}]  # fmt: skip
    graph = graph_of(
        node(i, weight_arrays=arrays, weight_bytes=sum(arrays.values()) + (1.0 if i == 2 else 0.0))
        for i, arrays in enumerate(reads)
    )
    pairs = list(zip(graph.tied_node.tolist(), graph.tied_array.tolist(), strict=True))
    assert pairs == [(0, 0), (1, 0), (1, 1), (2, 0), (5, 0), (5, 1)]
    assert graph.tied_bytes.tolist() == [8.0, 2.0]
    assert graph.held_weights.own.tolist() == [0, 0, 1, 0, 4, 0, 3]
    assert graph.held_weights.total(np.array([1, 1, 1, 0, 0, 0, 0], np.bool_)) == 11.0
    assert graph.held_weights.total(np.ones(7, np.bool_)) == 18.0


def two(**features):
    return built("ab", [("a", "b")], **features)


def edge(number, num_bytes=1.0, output=0):
    return graph_of([node("a"), node("b")], [(0, number, num_bytes, output)])


def profiles(first, second):
    return graph_of([node("a", seconds=first), node("b", seconds=second)])


NAN, INF = float("nan"), float("inf")
BAD = [
    (lambda: built("", []), "graph 'g' has no nodes: nothing in it is computed"),
    (lambda: built("aba", []), "graph 'g': two nodes have the id 'a'"),
    (lambda: built([1, "1"], []), "node '1': node ids are unique"),
    (lambda: built("ab", [("a", "x")]), "names node 'x', which is absent"),
    (lambda: built("ab", [("a", "a")]), "node 'a' feeds itself"),
    (lambda: edge(5), "an edge ends at 5, which is no node"),
    (lambda: edge(-1), "an edge ends at -1, which is no node"),
    (lambda: two(flops=NAN), "graph 'g', node 'a': flops is a finite number >= 0"),
    (lambda: two(flops=-1.0), "flops is a finite number >= 0"),
    (lambda: two(bytes_accessed=INF), "bytes_accessed is a finite number"),
    (lambda: two(output_bytes=-1.0), "output_bytes is"),
    (lambda: two(weight_bytes=NAN), "weight_bytes is"),
    (lambda: two(output_itemsize=-2.0), "output_itemsize is"),
    (lambda: two(weight_itemsize=NAN), "weight_itemsize is"),
    (lambda: two(transfer_seconds=-1.0), "transfer_seconds is"),
    (lambda: two(colocation=-2), "colocation is a class >= 0 or FREE"),
    (lambda: profiles({"x": NAN}, {"x": 1.0}), "node 'a': seconds is a number >= 0, or inf"),
    (lambda: profiles({"x": 1.0}, {"x": -1.0}), "node 'b': seconds is"),
    (lambda: profiles({"x": 1.0}, {}), "node 'b' has no seconds for 'x'"),
    (lambda: edge(1, NAN), "edge 0 (0 -> 1): edge_bytes is a finite number >= 0"),
    (lambda: edge(1, -1.0), "edge_bytes is"),
    (lambda: edge(1, output=-1), "edge_output is >= 0"),
]


@pytest.mark.parametrize(("build", "words"), BAD, ids=[words for _, words in BAD])
def test_bad_graphs_are_refused(build, words):
    with pytest.raises(GraphError, match=re.escape(words)):
        build()


def test_a_cycle_is_named_in_order():
    edges = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "b"), ("d", "e")]
    with pytest.raises(GraphError) as error:
        built("abcde", edges)
    loop = str(error.value).split("cycle: ")[1].replace("'", "").split(" -> ")
    assert loop[0] == loop[-1]
    assert sorted(loop[1:]) == ["b", "c", "d"]
    assert all(step in edges for step in pairwise(loop))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"senders": np.array([1], np.int32), "receivers": np.array([0], np.int32)}, "topological"),
        ({"receivers": np.array([9], np.int32)}, "an edge joins nodes of the graph"),
        ({"kind": np.array([0, 77], np.int8)}, "node 'b': kind is an OpKind"),
        (tied_fields([0, 1], [0, 1], [1.0]), "reads array 1): tied_array is an array of tied_b"),
        (tied_fields([0, 2], [0, 0], [1.0]), "(2 reads array 0): tied_node is a node of the"),
        (tied_fields([1, 0], [0, 0], [1.0]), "pairs of tied_node and tied_array ascend"),
        (tied_fields([0], [0], [1.0]), "a tied array is read by at least two nodes"),
        (tied_fields([0, 1], [0, 0], [9.0]), "weight_bytes includes the tied arrays"),
        (tied_fields([0, 1], [0, 0], [1.0, 1.0]), "tied_bytes has arrays that no node reads"),
        (tied_fields([0, 1], [0, 0], [np.nan]), "tied_bytes must be finite numbers >= 0"),
        ({"source": ("",)}, "source has 1 entries"),
        ({"edge_bytes": np.zeros(2)}, "edge_bytes has 2 entries"),
        ({"seconds": {"gpu": np.zeros(3)}}, "seconds['gpu'] has 3 entries"),
    ],
)
def test_a_graph_made_by_hand_is_checked(change, words):
    graph = two()
    broken = object.__new__(type(graph))
    for name, value in {**vars(graph), **change}.items():
        object.__setattr__(broken, name, value)
    with pytest.raises(GraphError, match=re.escape(words)):
        check_graph(broken)


@given(st.permutations("abcdefgh"), st.sets(st.tuples(st.integers(0, 7), st.integers(0, 7))))
def test_any_order_of_adding_gives_a_topological_one(order, pairs):
    edges = {("abcdefgh"[min(p)], "abcdefgh"[max(p)]) for p in pairs if p[0] != p[1]}
    graph = built(order, sorted(edges))
    assert sorted(graph.names) == sorted(order)
    named = {
        (graph.names[u], graph.names[v])
        for u, v in zip(graph.senders, graph.receivers, strict=True)
    }
    assert named == edges
    assert bool((graph.senders < graph.receivers).all())
