"""What a learned cost model sees: by hand for one kernel, and that order and padding change
nothing."""

import numpy as np
import pytest

from go_rl.core import Geometry, OpKind
from go_rl.costs.kernels.features import (
    KERNEL_FEATURES,
    NODE_FEATURES,
    kernel_features,
)
from go_rl.graphs.cutting.kernel_set import cut_kernels
from go_rl.graphs.cutting.opcode_names import UNKNOWN
from go_rl.graphs.readers.graph_builder import GraphBuilder, Node


def matmul_and_relu():
    """[3, 1023] times a weight [1023, 7], then a maximum; the product is of no use elsewhere."""
    builder = GraphBuilder("g")
    builder.add_node(Node("x", "input", OpKind.INPUT, output_bytes=12276.0, output_itemsize=4.0,
                          output_shape=(3, 1023)))  # fmt: skip
    builder.add_node(
        Node("dot", "dot_general", OpKind.MATMUL, flops=2.0 * 3 * 7 * 1023, output_bytes=84.0,
             weight_bytes=28644.0, output_itemsize=4.0, output_shape=(3, 7),
             geometry=Geometry(minor=3.0))
    )  # fmt: skip
    builder.add_node(
        Node("relu", "max", OpKind.ELEMENTWISE, flops=21.0, output_bytes=84.0, output_itemsize=4.0,
             output_shape=(3, 7), geometry=Geometry())
    )  # fmt: skip
    builder.add_edge(0, 1, 12276.0)
    builder.add_edge(1, 2, 84.0)
    return cut_kernels(builder.build(), np.array([0, 1, 1]))[0]


def test_by_hand():
    features = kernel_features(matmul_and_relu(), ("dot_general", "max"))
    node = dict(zip(NODE_FEATURES, features.nodes[1].tolist(), strict=True))
    assert features.opcode.tolist() == [UNKNOWN, 1, 2]
    assert (node["is matmul"], node["is input"]) == (1.0, 0.0)
    assert (node["dimension -2"], node["dimension -1"], node["dimension -3"]) == (2.0, 3.0, 0.0)
    assert node["FLOP"] == pytest.approx(np.log2(1 + 42 * 1023))
    assert node["FLOP an element"] == pytest.approx(np.log2(2047.0))
    assert (node["minor in left"], node["minor in right"]) == (1.0, 1.0)
    assert (node["geometry unknown"], node["is result"], node["depth"]) == (0.0, 0.0, 1.0)
    whole = dict(zip(KERNEL_FEATURES, features.whole[0].tolist(), strict=True))
    assert whole["nodes"] == 2.0
    assert whole["bytes read"] == pytest.approx(np.log2(12277))
    assert whole["bytes inside"] == pytest.approx(np.log2(85))
    assert whole["FLOP of matmul"] == pytest.approx(np.log2(1 + 42 * 1023))
    assert whole["FLOP of convolution"] == 0.0
    assert whole["handed over"] == 1.0
    assert whole["laid out otherwise"] == 0.0
