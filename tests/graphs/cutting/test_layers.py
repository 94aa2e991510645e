"""Layers, read from the scopes in node names."""

from __future__ import annotations

import pytest
from reference.step_problems import graph_of

from go_rl.graphs.cutting.layers import layer_names, layers


def named(*names):
    return graph_of(len(names), [], {"names": names})


def test_a_scope_is_the_name_up_to_the_last_slash():
    graph = named("model/layer0/dot", "model/relu", "plain", "/rooted", "model/layer0/")
    assert layer_names(graph) == ("model/layer0", "model", "", "", "model/layer0")


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
