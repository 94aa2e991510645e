"""Observations: node and edge features of the graph, padded or as Gymnasium's graph.

Dimension letters: ``N`` nodes, ``E`` edges, ``F`` node features. All features lie in [-1, 1].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces
from jaxtyping import Bool, Float32, Float64, Int16, Int32, Int64

from go_rl.core import OpKind, Problem
from go_rl.objectives.common.workspace import UNDECIDED
from go_rl.objectives.makespan.choices import LEVELS

NO_NODE = -1
"""`EpisodeProgress.current`: no node waits for a decision."""

NODE_FEATURES = (
    "log_flops",
    "log_output_bytes",
    "log_weight_bytes",
    "seconds_share",
    "memory_share",
    "depth",
    "in_degree",
    "out_degree",
    "copied",
    "device",
    "decided",
    "current",
    *(f"kind_{kind.name.lower()}" for kind in OpKind),
)
"""Columns of the node features. Logarithms are log10(1 + x) / 18. ``seconds_share``: seconds over
the mean load of a device; ``memory_share``: weights over the least memory of a device; both at
most 1. ``depth``: longest path from a source over the longest of all. Degrees are log2(1 + d) / 16.
``copied``: the node follows its consumers and is never decided. ``device``: its number / (devices -
1), -1 while several are left. ``decided``: its turn has passed. ``current``: its turn is now."""

MAKESPAN_NODE_FEATURES = (*NODE_FEATURES, "priority", "fusion_priority")
"""Columns of the node features for makespan: `NODE_FEATURES`, where ``seconds_share`` is of the
fastest device, and ``copied`` marks inputs and constants, which are never decided; then both
priorities, priority / 19, -1 while undecided."""

EDGE_FEATURES = ("log_bytes",)
"""Columns of the edge features: log10(1 + bytes) / 18."""

OBSERVATIONS = ("dict", "graph")
"""Forms of an observation: a Dict of padded Boxes, or Gymnasium's Graph space."""

COLUMN = {name: i for i, name in enumerate(NODE_FEATURES)}


@dataclass(frozen=True, eq=False)
class GraphFeatures:
    """The part of an observation that a problem fixes."""

    nodes: Float32[np.ndarray, "N F"]
    """[N, F] `NODE_FEATURES`; device, decided and current are 0."""
    links: Int32[np.ndarray, "E 2"]
    """[E, 2] producing and consuming node of each edge."""
    edges: Float32[np.ndarray, "E 1"]
    """[E, 1] `EDGE_FEATURES`."""


@dataclass(frozen=True, eq=False)
class EpisodeProgress:
    """The part of an observation that changes."""

    device: Int16[np.ndarray, "N"]
    """[N] device of each node, -1 while several are left."""
    decided: Bool[np.ndarray, "N"]
    """[N] nodes whose turn has passed."""
    current: int
    """The node whose turn it is, or `NO_NODE`."""
    priorities: Int64[np.ndarray, "N 2"]
    """[N, 2] scheduling and fusion priority of each node, or `UNDECIDED`."""


def graph_features(
    problem: Problem, work: Float64[np.ndarray, "N"], copied: Bool[np.ndarray, "N"]
) -> GraphFeatures:
    """Return the features that a problem fixes.

    Args:
        problem: priced.
        work: [N] seconds of each node.
        copied: [N] nodes that are never decided.
    """
    graph, hardware = problem.graph, problem.hardware
    mean_load = work.sum() / hardware.num_devices
    memory = min(device.memory_bytes for device in hardware.devices)
    columns = {
        "log_flops": _log(graph.flops),
        "log_output_bytes": _log(problem.output_bytes),
        "log_weight_bytes": _log(problem.weight_bytes + problem.streamed_bytes),
        "seconds_share": work / mean_load if mean_load > 0 else work,
        "memory_share": problem.weight_bytes / memory,
        "depth": _depth(problem),
        "in_degree": _degree(graph.receivers, graph.num_nodes),
        "out_degree": _degree(graph.senders, graph.num_nodes),
        "copied": copied,
    }
    nodes = np.zeros((graph.num_nodes, len(NODE_FEATURES)), np.float32)
    for name, values in columns.items():
        nodes[:, COLUMN[name]] = np.clip(values, 0.0, 1.0)
    nodes[np.arange(graph.num_nodes), COLUMN["kind_input"] + graph.kind] = 1.0
    return GraphFeatures(
        nodes=nodes,
        links=np.stack([graph.senders, graph.receivers], axis=1),
        edges=np.clip(_log(problem.edge_bytes), 0.0, 1.0).astype(np.float32)[:, None],
    )


def _log(values: Float64[np.ndarray, "X"]) -> Float64[np.ndarray, "X"]:
    return np.log10(1.0 + values) / 18.0


def _degree(ends: Int32[np.ndarray, "E"], nodes: int) -> Float64[np.ndarray, "N"]:
    return np.log2(1.0 + np.bincount(ends, minlength=nodes)) / 16.0


def _depth(problem: Problem) -> Float64[np.ndarray, "N"]:
    graph = problem.graph
    depth: Int64[np.ndarray, "N"] = np.zeros(graph.num_nodes, np.int64)
    order = np.argsort(graph.senders, kind="stable")
    for u, v in zip(graph.senders[order].tolist(), graph.receivers[order].tolist(), strict=True):
        depth[v] = max(depth[v], depth[u] + 1)
    return depth / max(int(depth.max()), 1)


@dataclass(frozen=True)
class Observer:
    """Builds observations of one fixed space."""

    form: str
    """One of `OBSERVATIONS`."""
    max_nodes: int
    max_edges: int
    devices: int
    """Devices of each problem."""
    priorities: bool
    """Whether priorities are shown: `MAKESPAN_NODE_FEATURES`, not `NODE_FEATURES`."""

    @property
    def space(self) -> spaces.Space[Any]:
        """The observation space."""
        width = len(MAKESPAN_NODE_FEATURES if self.priorities else NODE_FEATURES)
        if self.form == "graph":
            return spaces.Graph(
                node_space=spaces.Box(-1.0, 1.0, (width,), np.float32),
                edge_space=spaces.Box(0.0, 1.0, (len(EDGE_FEATURES),), np.float32),
            )
        nodes, edges = self.max_nodes, self.max_edges
        return spaces.Dict(
            {
                "nodes": spaces.Box(-1.0, 1.0, (nodes, width), np.float32),
                "node_mask": spaces.Box(0, 1, (nodes,), np.int8),
                "links": spaces.Box(0, max(nodes - 1, 1), (edges, 2), np.int32),
                "edges": spaces.Box(0.0, 1.0, (edges, len(EDGE_FEATURES)), np.float32),
                "edge_mask": spaces.Box(0, 1, (edges,), np.int8),
            }
        )

    def observe(self, features: GraphFeatures, progress: EpisodeProgress) -> Any:
        """Return a fresh observation."""
        nodes = features.nodes.copy()
        scale = max(self.devices - 1, 1)
        nodes[:, COLUMN["device"]] = np.where(progress.device < 0, -1.0, progress.device / scale)
        nodes[:, COLUMN["decided"]] = progress.decided
        if progress.current != NO_NODE:
            nodes[progress.current, COLUMN["current"]] = 1.0
        if self.priorities:
            levels = progress.priorities
            shown = np.where(levels == UNDECIDED, -1.0, levels / (LEVELS - 1))
            nodes = np.hstack([nodes, shown.astype(np.float32)])
        if self.form == "graph":
            return spaces.GraphInstance(nodes, features.edges.copy(), features.links.copy())
        return {
            "nodes": _padded(nodes, self.max_nodes),
            "node_mask": _padded(np.ones(len(nodes), np.int8), self.max_nodes),
            "links": _padded(features.links, self.max_edges),
            "edges": _padded(features.edges, self.max_edges),
            "edge_mask": _padded(np.ones(len(features.edges), np.int8), self.max_edges),
        }


def _padded(rows: np.ndarray, length: int) -> np.ndarray:
    out = np.zeros((length, *rows.shape[1:]), rows.dtype)
    out[: len(rows)] = rows
    return out
