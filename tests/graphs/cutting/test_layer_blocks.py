"""Layers as launchers of pipelines count them, read from node names."""

from __future__ import annotations

import pytest
from reference.step_problems import graph_of

from go_rl.graphs.cutting.layer_blocks import ELSEWHERE, layer_blocks


def chain(*names):
    """Nodes one after the other."""
    edges = [(node, node + 1, 1.0) for node in range(len(names) - 1)]
    return graph_of(len(names), edges, {"names": names})


@pytest.mark.parametrize(
    ("names", "paths", "position"),
    [
        (["e/x", "m/layers.0/a", "m/layers.1/a", "h/x"], ["m.layers.0", "m.layers.1"],
         [0, 1, 2, 3]),
        (["/m/h.0/attn/MatMul", "/m/h.0/Add", "/m/h.1/Add"], ["m.h.0", "m.h.1"], [1, 1, 2]),
        (["enc/layer_0/x", "enc/layer_1/x", "y.0"], ["enc.layer_0", "enc.layer_1"], [1, 2, 3]),
        (["Net/Block_0/a", "Net/add.1", "Net/Block_1/a"], ["Net.Block_0", "Net.Block_1"],
         [1, 1, 2]),  # what lies between belongs to the last layer that it needs
        (["m/layers.0/h.0/a", "m/layers.0/h.1/a", "m/layers.1/h.0/a"],
         ["m.layers.0", "m.layers.1"], [1, 1, 2]),
        (["a/x", "b/x"], [], [ELSEWHERE, ELSEWHERE]),
        (["add.0", "add.1", "add.2"], [], [ELSEWHERE] * 3),
        (["m/layers.0/a", "m/b", "m/c"], [], [ELSEWHERE] * 3),
    ],
)  # fmt: skip
def test_layers_are_the_numbered_parts_that_hold_most_of_the_work(names, paths, position):
    found = layer_blocks(chain(*names))
    assert list(found.paths) == paths
    assert found.position.tolist() == position
    assert found.behind == len(paths) + 1
