"""Work of kernels kept as graphs."""

import numpy as np
import pytest

from go_rl.core import OpKind
from go_rl.costs.models.kernel_cache import kernel_work
from go_rl.graphs.cutting.kernel_set import cut_kernels
from go_rl.graphs.readers.graph_builder import GraphBuilder, Node


def test_operands_weights_and_results_move_once():
    """x [16 bytes] -> product with 32 bytes of weights -> maximum; both fused, then a copy."""
    builder = GraphBuilder("g")
    builder.add_node(Node("x", "input", OpKind.INPUT, output_bytes=16.0))
    builder.add_node(Node("dot", "dot_general", OpKind.MATMUL, flops=100.0, output_bytes=8.0,
                          weight_bytes=32.0))  # fmt: skip
    builder.add_node(Node("max", "max", OpKind.ELEMENTWISE, flops=2.0, output_bytes=8.0))
    builder.add_node(Node("copy", "copy", OpKind.MOVEMENT, output_bytes=8.0))
    for u, v, size in ((0, 1, 16.0), (1, 2, 8.0), (2, 3, 8.0)):
        builder.add_edge(u, v, size)
    work = kernel_work(cut_kernels(builder.build(), np.array([0, 1, 1, 3]))[0])
    assert work.kind.tolist() == [OpKind.MATMUL, OpKind.MOVEMENT]
    assert work.flops.tolist() == [102.0, 0.0]
    assert work.bytes_accessed.tolist() == pytest.approx([16 + 32 + 8, 8 + 8])
