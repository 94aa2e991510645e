"""Layers of a network, read from the scopes in its node names."""

from __future__ import annotations

import numpy as np
from jaxtyping import Int64

from go_rl.core import OpGraph


def layer_names(graph: OpGraph) -> tuple[str, ...]:
    """Return [N] the scope of each node: its name up to the last ``/``; empty outside any scope."""
    return tuple(str(name).rpartition("/")[0] for name in graph.names)


def layers(graph: OpGraph) -> Int64[np.ndarray, "N"]:
    """Return [N] the layer of each node, numbered by first appearance.

    A node outside any scope belongs to the layer of the node before it.
    """
    number: dict[str, int] = {}
    found = np.zeros(graph.num_nodes, np.int64)
    last = 0
    for node, scope in enumerate(layer_names(graph)):
        if scope:
            last = number.setdefault(scope, len(number))
        found[node] = last
    return found
