"""What a learned cost model sees: by hand for one kernel, and that order and padding change
nothing."""

from dataclasses import replace

import numpy as np
import pytest
from costs.kernels.kernels import few_features, few_kernels

from go_rl.core import Geometry, OpKind
from go_rl.costs.kernels.batch import LENGTHS, LONGEST, all_batches, batch_of, lengths
from go_rl.costs.kernels.features import (
    KERNEL_FEATURES,
    NODE_FEATURES,
    kernel_features,
    layout_features,
)
from go_rl.graphs.cutting.kernel_set import cut_kernels
from go_rl.graphs.cutting.opcode_names import UNKNOWN, opcode, opcode_numbers, vocabulary_of
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


def test_how_often_sizes_can_be_halved():
    """A scalar, [12, 6], [64, 4096]: 4,096 twelve times, of which ten count."""
    builder = GraphBuilder("g")
    for shape in ((), (12, 6), (64, 4096)):
        builder.add_node(
            Node(str(shape), "exp", OpKind.ELEMENTWISE, flops=1.0, output_bytes=4.0,
                 output_itemsize=4.0, output_shape=shape)
        )  # fmt: skip
    features = kernel_features(cut_kernels(builder.build(), np.arange(3))[0], ())
    columns = [i for i, name in enumerate(NODE_FEATURES) if name.startswith("twos")]
    found = features.nodes[:, columns].astype(int).tolist()
    assert sorted(found) == [[0, 0, 0], [1, 2, 3], [10, 6, 10]]


def test_layouts_are_counted():
    """Of four operands the first is as it comes; the last dimension of the third is the slowest,
    that of the fourth the middle one."""
    setting = '{"layouts":[[0,1],null,[1,0],[0,2,1]]}'
    assert layout_features(setting) == pytest.approx(tuple(np.log2([3.0, 3.0, 2.0])))
    assert layout_features("") == layout_features('{"flags":{}}') == (0.0, 0.0, 0.0)
    features = kernel_features(matmul_and_relu(), ()).with_layouts([setting])
    assert features.whole[0, -3:].tolist() == pytest.approx(np.log2([3.0, 3.0, 2.0]).tolist())


def test_kernels_are_taken_with_their_nodes_and_edges():
    features = few_features()
    which = np.array([3, 0, 3])
    taken = features.take(which)
    for length in (8, 24):
        fits = np.flatnonzero(np.diff(taken.first_node) <= length)
        mine = batch_of(taken, fits, 3, length)
        for ours, its in zip(mine, batch_of(features, which[fits], 3, length), strict=True):
            np.testing.assert_array_equal(ours, its)


def test_a_graph_without_geometry_says_so():
    kernels = matmul_and_relu()
    bare = replace(kernels, graph=replace(kernels.graph, geometry=None))
    column = kernel_features(bare, ()).nodes[:, NODE_FEATURES.index("geometry unknown")]
    assert column.tolist() == [1.0, 1.0, 1.0]


def test_the_order_of_kernels_does_not_matter():
    kernels, features = few_kernels(), few_features()
    order = np.random.default_rng(0).permutation(kernels.num_kernels)
    again = kernel_features(kernels.take(order), vocabulary_of(kernels.graph.op_type))
    np.testing.assert_array_equal(again.whole, features.whole[order])
    for i, k in enumerate(order.tolist()):
        mine = slice(again.first_node[i], again.first_node[i + 1])
        its = slice(features.first_node[k], features.first_node[k + 1])
        np.testing.assert_array_equal(again.nodes[mine], features.nodes[its])
        np.testing.assert_array_equal(again.opcode[mine], features.opcode[its])


def test_batches_hold_every_kernel_once_and_its_edges():
    features, seen = few_features(), []
    for which, batch in all_batches(features):
        seen += which.tolist()
        for row, k in enumerate(which.tolist()):
            first, last = features.first_node[k], features.first_node[k + 1]
            assert batch.real[row].sum() == last - first
            np.testing.assert_array_equal(
                batch.nodes[row, : last - first], features.nodes[first:last]
            )
            edges = slice(features.first_edge[k], features.first_edge[k + 1])
            readers, read = features.receivers[edges] - first, features.senders[edges] - first
            expected = np.zeros_like(batch.adjacent[row])
            expected[readers, read] = 1.0
            np.testing.assert_array_equal(batch.adjacent[row], expected)
        assert not batch.real[len(which) :].any()
    assert sorted(seen) == list(range(features.num_kernels))


def test_of_a_kernel_of_too_many_nodes_the_last_are_seen():
    """One operator reads 200 tensors; it comes last."""
    builder = GraphBuilder("g")
    for i in range(200):
        builder.add_node(Node(i, "input", OpKind.INPUT, output_bytes=4.0))
    builder.add_node(Node("all", "concatenate", OpKind.MOVEMENT, output_bytes=800.0))
    for i in range(200):
        builder.add_edge(i, 200, 4.0)
    features = kernel_features(cut_kernels(builder.build(), np.arange(201))[0], ("concatenate",))
    assert lengths(features).tolist() == [LONGEST] == [LENGTHS[-1]]
    batch = batch_of(features, np.array([0]), 1, LONGEST)
    assert batch.opcode[0].tolist() == [0] * (LONGEST - 1) + [1]
    assert batch.adjacent[0, -1].sum() == LONGEST - 1
    assert batch.adjacent[0, :-1].sum() == 0


def test_other_formats_call_opcodes_by_other_names():
    assert [opcode(name) for name in ("Conv", "dot", "Relu", "tanh", "MyOp")] == [
        "conv_general_dilated", "dot_general", "max", "tanh", "MyOp",
    ]  # fmt: skip
    assert opcode_numbers(("Gemm", "MyOp", "max"), ("dot_general", "max")).tolist() == [1, 0, 2]
