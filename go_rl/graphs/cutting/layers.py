"""Layers of a network, read from the scopes in its node names, or else from its weights."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from jaxtyping import Bool, Int64

from go_rl.core import OpGraph
from go_rl.core.graph.fusion import heavy_nodes


def layer_names(graph: OpGraph) -> tuple[str, ...]:
    """Return [N] the scope of each node: its name up to the last ``/``; empty outside any scope."""
    return tuple(str(name).rpartition("/")[0] for name in graph.names)


def in_layers(graph: OpGraph) -> Bool[np.ndarray, "N"]:
    """Return [N] whether a node's own scope, or the weights that it reads, state its layer."""
    return np.array([key is not None for key in _keys(graph)], bool)


def layers(graph: OpGraph) -> Int64[np.ndarray, "N"]:
    """Return [N] the layer of each node, numbered by first appearance.

    Nodes with one scope are a layer. In a graph without scopes, nodes that read one array of
    weights are: an unrolled cell is one layer, and so are the steps back through it and its update.
    Any other node belongs to the layer of the node before it.
    """
    number: dict[Hashable, int] = {}
    found = np.zeros(graph.num_nodes, np.int64)
    last = 0
    for node, key in enumerate(_keys(graph)):
        if key is not None:
            last = number.setdefault(key, len(number))
        found[node] = last
    return found


def _keys(graph: OpGraph) -> list[Hashable | None]:
    """Scope or array of weights that states the layer of each node; None where nothing does."""
    scopes = layer_names(graph)
    if any(scopes):
        return [scope or None for scope in scopes]
    keys = _arrays(graph)
    joined = _joined_biases(graph, keys)
    return [None if key is None else joined.get(key, key) for key in keys]


def _arrays(graph: OpGraph) -> list[Hashable | None]:
    """An array of weights that each node reads, alone or with others; None: none."""
    keys: list[Hashable | None] = [
        ("own", node) if weighs else None for node, weighs in enumerate(graph.weight_bytes > 0)
    ]
    for node, array in zip(graph.tied_node.tolist(), graph.tied_array.tolist(), strict=True):
        keys[node] = ("tied", array)
    return keys


def _joined_biases(graph: OpGraph, keys: Sequence[Hashable | None]) -> dict[Hashable, Hashable]:
    """Arrays that belong to others': what is added to a product belongs to the product's."""
    heavy = np.zeros(graph.num_nodes, bool)
    heavy[heavy_nodes(graph)] = True
    joined: dict[Hashable, Hashable] = {}
    behind = heavy[graph.senders] & ~heavy[graph.receivers] & ~graph.is_backward[graph.receivers]
    for edge in np.flatnonzero(behind).tolist():
        product, light = keys[graph.senders[edge]], keys[graph.receivers[edge]]
        if product is not None and light is not None and light != product:
            joined.setdefault(light, product)
    return joined
