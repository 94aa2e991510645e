"""What an agent sees of a makespan problem: `Observer`'s features and the priorities so far."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from gymnasium import spaces
from jaxtyping import Int64

from go_rl.core import Problem
from go_rl.envs.observation import (
    COLUMN,
    NODE_FEATURES,
    EpisodeProgress,
    GraphFeatures,
    Observer,
    graph_features,
)
from go_rl.objectives.makespan.choices import LEVELS

UNDECIDED = -1
"""Priority, or device, that has not been chosen."""
STEP_NODE_FEATURES = (*NODE_FEATURES, "priority", "fusion_priority")
"""Columns of the node features: `NODE_FEATURES`, where ``seconds_share`` is of the fastest device,
``copied`` marks inputs and constants, which are never decided, and ``chip`` is the device; then
both priorities, priority / 19, -1 while undecided."""


def step_features(problem: Problem) -> GraphFeatures:
    """Return the features that a makespan problem fixes."""
    fastest = problem.seconds.min(axis=0, keepdims=True)
    finite = replace(problem, seconds=np.where(np.isfinite(fastest), fastest, 0.0))
    features = graph_features(finite)
    features.nodes[:, COLUMN["copied"]] = problem.graph.is_fed
    return features


@dataclass(frozen=True)
class StepObserver:
    """Builds observations of one fixed space."""

    base: Observer

    @property
    def max_nodes(self) -> int:
        """Rows of the padded node features."""
        return self.base.max_nodes

    @property
    def space(self) -> spaces.Space[Any]:
        """The observation space: `Observer`'s with `STEP_NODE_FEATURES`."""
        space, width = self.base.space, len(STEP_NODE_FEATURES)
        if isinstance(space, spaces.Graph):
            nodes = spaces.Box(-1.0, 1.0, (width,), np.float32)
            return spaces.Graph(node_space=nodes, edge_space=space.edge_space)
        assert isinstance(space, spaces.Dict)
        nodes = spaces.Box(-1.0, 1.0, (self.max_nodes, width), np.float32)
        return spaces.Dict({**space.spaces, "nodes": nodes})

    def observe(
        self,
        features: GraphFeatures,
        progress: EpisodeProgress,
        levels: Int64[np.ndarray, "N 2"],
        devices: int,
    ) -> Any:
        """Return a fresh observation; ``levels`` [N, 2]: both priorities or `UNDECIDED`."""
        seen: Any = self.base.observe(features, progress, devices)
        columns = np.where(levels == UNDECIDED, -1.0, levels / (LEVELS - 1)).astype(np.float32)
        if self.base.form == "graph":
            return seen._replace(nodes=np.hstack([seen.nodes, columns]))
        padded = np.zeros((self.max_nodes, 2), np.float32)
        padded[: len(columns)] = columns
        return seen | {"nodes": np.hstack([seen["nodes"], padded])}
