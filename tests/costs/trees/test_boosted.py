"""Boosted trees, a rival: what they read, and that they learn."""

import numpy as np
from costs.kernels.kernels import few_features, few_kernels
from rounding import assert_rounded_alike

from go_rl.costs.trees.boosted import summed_features
from go_rl.graphs.cutting.opcode_names import vocabulary_of


def summed() -> np.ndarray:
    return summed_features(few_features(), len(vocabulary_of(few_kernels().graph.op_type)))


def test_features_are_sums_over_the_nodes_and_counts_of_opcodes():
    features, table = few_features(), summed()
    width = features.whole.shape[1]
    first, last = features.first_node[3], features.first_node[4]
    np.testing.assert_array_equal(table[3, :width], features.whole[3])
    inner = table[3, width : width + features.nodes.shape[1]]
    assert_rounded_alike(inner, features.nodes[first:last].sum(axis=0))
    assert table[3, width + features.nodes.shape[1] :].sum() == last - first
