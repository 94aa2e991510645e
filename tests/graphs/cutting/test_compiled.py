"""Networks as XLA compiles them for a CPU: what is computed again, and chains of convolutions."""

from __future__ import annotations

import numpy as np

from go_rl.core import OpGraph, OpKind, check_graph
from go_rl.graphs.cutting.compiled import compiled_network, default_leaders
from go_rl.graphs.cutting.recomputed import recomputed_nodes
from go_rl.graphs.readers.graph_builder import GraphBuilder, Node

KINDS = {
    "conv": ("conv_general_dilated", OpKind.CONVOLUTION),
    "add": ("add", OpKind.ELEMENTWISE),
    "max": ("max", OpKind.ELEMENTWISE),
    "tanh": ("tanh", OpKind.ELEMENTWISE),
    "sum": ("reduce_sum", OpKind.REDUCTION),
    "dot": ("dot_general", OpKind.MATMUL),
    "in": ("input", OpKind.INPUT),
    "max_pool": ("reduce_window_max", OpKind.REDUCTION),
}


def graph_of(*nodes: tuple[str, *tuple[int, ...]]) -> OpGraph:
    """Each node is its kind and the numbers of its producers; tensors have 400 bytes, but sums 4;
    the last node is the result."""
    builder = GraphBuilder("net")
    for i, (what, *producers) in enumerate(nodes):
        op_type, kind = KINDS[what]
        size = 4 if what == "sum" else 400
        builder.add_node(
            Node(f"{what}-{i}", op_type, kind, flops=float(kind != OpKind.INPUT),
                 output_bytes=float(size), output_itemsize=4.0, output_shape=(size // 4,),
                 is_output=i == len(nodes) - 1)
        )  # fmt: skip
        for producer in producers:
            builder.add_edge(producer, i, 4.0 if nodes[producer][0] == "sum" else 400.0)
    return builder.build()


def residual_blocks(count: int, activation: str = "max") -> OpGraph:
    """x, then ``count`` times relu(x + conv(x)); a convolution is the result."""
    nodes: list[tuple[str, *tuple[int, ...]]] = [("in",)]
    last = 0
    for _ in range(count):
        nodes += [("conv", last), ("add", last, len(nodes)), (activation, len(nodes) + 1)]
        last = len(nodes) - 1
    return graph_of(*nodes, ("conv", last))


def test_a_residual_is_computed_again_from_its_beginning():
    """Nodes of three blocks: 1-3, 4-6, 7-9; the sum 5 reads 3, the sum 8 reads 6."""
    graph = residual_blocks(3)
    leader = default_leaders(graph)
    assert leader.tolist() == [0, 1, 1, 1, 4, 4, 4, 7, 7, 7, 10]
    assert recomputed_nodes(graph, leader) == [(4, (2, 3)), (7, (2, 3, 5, 6))]
    network = compiled_network(graph)
    assert network.again is not None
    check_graph(network.again.graph)
    assert network.again_in.tolist() == [1, 2]
    assert network.nodes[1] == (4, 5, 6)
    results = np.bincount(network.again.kernel, network.again.graph.is_output)
    assert results.tolist() == [1, 1], "what lies between is written by nobody"
