"""Padding to a small set of sizes, so that a new graph rarely costs a compilation.

A padded graph is a `jraph.GraphsTuple` of two graphs: the real one and the padding, whose edges
run between padding nodes only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jraph
import numpy as np
from jaxtyping import Float32

from go_rl.core import PolicyError
from go_rl.policy.observations.policy_graph import PolicyGraph

BUCKETS = (256, 640, 1280, 2560, 5120, 12288, 65536, 262144)
"""Nodes of the padded graphs, padding included."""
EDGES_PER_NODE = (2, 8)
"""Edges of the padded graphs for each node; the first that suffices."""


@dataclass(frozen=True, eq=False)
class Padded:
    """A `PolicyGraph` with ``U`` rows, of which only the first are real."""

    graph: jraph.GraphsTuple
    """Nodes: {features [U, F], places [U, J], share [U]}; globals [2, P]."""
    real: Float32[np.ndarray, "U"]
    """[U] 1 for real nodes, 0 for padding."""
    num_units: int
    """Real nodes."""
    num_devices: int


def bucket(units: int, edges: int) -> tuple[int, int]:
    """Return (nodes, edges) of the smallest bucket with room for a graph and a padding node.

    Raises:
        PolicyError: the graph is larger than any bucket.
    """
    for nodes in BUCKETS:
        for ratio in EDGES_PER_NODE:
            if units < nodes and edges <= nodes * ratio:
                return nodes, nodes * ratio
    raise PolicyError(
        f"the graph has {units} units and {edges} edges between them; the policy takes at most "
        f"{BUCKETS[-1] - 1} units and {BUCKETS[-1] * EDGES_PER_NODE[-1]} edges. "
        "Use --method linear-dp, or merge operators before partitioning"
    )


def pad(graph: PolicyGraph) -> Padded:
    """Return the graph padded to its bucket.

    Raises:
        PolicyError: the graph is larger than any bucket.
    """
    nodes, edges = bucket(graph.num_units, len(graph.senders))
    arrays: dict[str, Any] = {
        "nodes": {"features": graph.features, "places": graph.places, "share": graph.share},
        "edges": np.zeros((len(graph.senders), 0), np.float32),
        "senders": graph.senders,
        "receivers": graph.receivers,
        "globals": graph.hardware[None],
        "n_node": np.array([graph.num_units], np.int32),
        "n_edge": np.array([len(graph.senders)], np.int32),
    }
    padded = jraph.pad_with_graphs(
        jraph.GraphsTuple(**arrays), n_node=nodes, n_edge=edges, n_graph=2
    )
    real = (np.arange(nodes) < graph.num_units).astype(np.float32)
    return Padded(padded, real, graph.num_units, graph.num_devices)
