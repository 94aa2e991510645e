"""Layers, read from scopes in node names, or from weights."""

from __future__ import annotations

import pytest
from reference.step_problems import graph_of

from go_rl.core import OpKind
from go_rl.graphs.cutting.layers import in_layers, layers


def named(*names):
    return graph_of(len(names), [], {"names": names})


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (["a/x", "a/y", "b/x", "a/z"], [0, 0, 1, 0]),
        (["b/x", "a/x"], [0, 1]),
        (["x", "y"], [0, 0]),
        (["x", "a/y", "z", "b/y", "w"], [0, 0, 0, 1, 1]),
        (["a/x", "a/b/x", "a/y"], [0, 1, 0]),
        ([3, 4, 5], [0, 0, 0]),
        (["only"], [0]),
    ],
)
def test_layers_are_numbered_by_first_appearance_and_strays_follow_the_node_before(names, found):
    assert layers(named(*names)).tolist() == found


def test_without_scopes_a_layer_is_what_reads_one_array_of_weights_and_the_bias_behind_it():
    """Two cells, unrolled twice: product, bias, activation; then the update of both."""
    tied: list[str | None] = [None] * 16
    for array, readers in enumerate([(0, 6, 12), (1, 7, 13), (3, 9, 14), (4, 10, 15)]):
        for node in readers:
            tied[node] = str(array)
    kinds = [OpKind.MATMUL if node in (0, 3, 6, 9) else OpKind.ELEMENTWISE for node in range(16)]
    weights = [0.0 if array is None else 4.0 for array in tied]
    edges = [(node, node + 1, 1.0) for node in range(11) if node != 5]
    graph = graph_of(16, edges, {"kinds": kinds, "tied": tied, "weights": weights})
    assert layers(graph).tolist() == [0] * 3 + [1] * 3 + [0] * 3 + [1] * 3 + [0, 0, 1, 1]
    assert in_layers(graph).tolist() == [array is not None for array in tied]
