"""Cutting kernels out of a graph, and hashes that know a kernel wherever it stands."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.step_problems import graph_of, random_edges, random_kinds

from go_rl.core import Geometry, OpGraph, OpKind, check_graph
from go_rl.graphs.cutting.fusion import Fuser
from go_rl.graphs.cutting.kernel_set import KernelSet, cut_kernels, join_kernels
from go_rl.graphs.readers.graph_builder import GraphBuilder, Node


def cut(graph: OpGraph, leader: list[int]) -> KernelSet:
    return cut_kernels(graph, np.array(leader))[0]


def chain(*shapes: tuple[int, ...], names: str = "abcdef", minor: float = 0.0) -> OpGraph:
    """An input and elementwise operators behind it; the last is the result."""
    builder = GraphBuilder("chain")
    for i, shape in enumerate(shapes):
        size = float(4 * np.prod(shape))
        kind = OpKind.ELEMENTWISE if i else OpKind.INPUT
        builder.add_node(
            Node(names[i], "add" if i else "input", kind, flops=float(bool(i)), output_bytes=size,
                 output_itemsize=4.0, output_shape=shape, is_output=i == len(shapes) - 1,
                 geometry=Geometry(minor=minor))
        )  # fmt: skip
        if i:
            builder.add_edge(i - 1, i, float(4 * np.prod(shapes[i - 1])))
    return builder.build()


def test_a_kernel_has_what_it_reads_as_inputs():
    """x -> a -> b -> c, and a -> c; a alone, then b and c together."""
    builder = GraphBuilder("g")
    for name in "xabc":
        kind = OpKind.INPUT if name == "x" else OpKind.ELEMENTWISE
        builder.add_node(Node(name, name, kind, output_bytes=8.0, output_shape=(2,)))
    for u, v in ((0, 1), (1, 2), (2, 3), (1, 3)):
        builder.add_edge(u, v, 8.0)
    kernels, leaders = cut_kernels(builder.build(), np.array([0, 1, 2, 2]))
    check_graph(kernels.graph)
    assert leaders.tolist() == [1, 2]
    assert kernels.graph.op_type == ("input", "input", "a", "b", "c")
    assert kernels.kernel.tolist() == [0, 1, 0, 1, 1]
    edges = set(zip(kernels.graph.senders.tolist(), kernels.graph.receivers.tolist(), strict=True))
    assert edges == {(0, 2), (1, 3), (1, 4), (3, 4)}, "a's tensor comes once, for both readers"
    assert kernels.graph.is_output.tolist() == [False, False, True, False, True]
    assert kernels.graph.output_bytes[:2].tolist() == [8.0, 8.0]


@pytest.mark.parametrize(
    "other",
    [
        cut(chain((2, 3), (2, 3)), [0, 1]),
        cut(chain((3, 2), (2, 3), (2, 3)), [0, 1, 1]),
        cut(chain((2, 3), (3, 2), (2, 3)), [0, 1, 1]),
        cut(chain((2, 3), (2, 3), (2, 3), minor=1.0), [0, 1, 1]),
        cut(chain((2, 3), (2, 3), (2, 3), (2, 3)), [0, 1, 1, 3]),
    ],
    ids=["shorter", "other input", "other shape", "other geometry", "read twice"],
)
def test_a_hash_tells_kernels_apart(other):
    one = cut(chain((2, 3), (2, 3), (2, 3)), [0, 1, 1])
    same = [h for h in other.hashes if h in one.hashes]
    assert same == ([] if other.num_kernels == 1 else list(one.hashes))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000))
def test_cutting_loses_nothing_and_parts_join_again(seed):
    rng = np.random.default_rng(seed)
    count = int(rng.integers(2, 30))
    edges = random_edges(rng, count)
    graph = graph_of(count, edges, {"kinds": random_kinds(rng, count, edges)})
    wish = rng.integers(0, 4, (1, count))
    leader = Fuser(graph).leaders(wish, np.zeros((1, count), int))[0]
    kernels, leaders = cut_kernels(graph, leader)
    assert kernels.num_kernels == len(set(leader[~graph.is_fed].tolist()))
    if not kernels.num_kernels:
        return
    check_graph(kernels.graph)
    assert kernels.graph.flops.sum() == graph.flops.sum()
    for number, lead in enumerate(leaders):
        mine = kernels.kernel == number
        assert mine[kernels.graph.senders].sum() == mine[kernels.graph.receivers].sum()
        ops = sorted(np.array(kernels.graph.op_type)[mine & (kernels.graph.kind != OpKind.INPUT)])
        assert ops == sorted(np.array(graph.op_type)[leader == lead])
    order = rng.permutation(kernels.num_kernels)
    few = kernels.take(order[: (len(order) + 1) // 2])
    assert few.hashes == tuple(kernels.hashes[i] for i in order[: (len(order) + 1) // 2])
    both = join_kernels([few, kernels])
    check_graph(both.graph)
    assert both.hashes == few.hashes + kernels.hashes
