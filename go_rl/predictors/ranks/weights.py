"""Weights of ranking networks: several that learned from the same data sets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float32, Float64, Int64

from go_rl.core import CheckpointError
from go_rl.kernels import KernelSet
from go_rl.predictors.kernels.features import KERNEL_FEATURES, NODE_FEATURES, kernel_features
from go_rl.predictors.kernels.network import KernelNetworkConfig
from go_rl.predictors.ranks.data import TASKS, Task, candidate_columns
from go_rl.predictors.ranks.network import RankNetwork, RankNetworkConfig
from go_rl.predictors.ranks.training import TrainedRanks
from go_rl.predictors.weight_file import Columns, Ensemble, WeightKind, batch_shapes

SHIPPED = Path(__file__).parent / "pretrained"
KIND = WeightKind("rank weights", "go_rl-kernel-ranks", 2, SHIPPED)
"""Version 2: features of tilings assume the constants of `go_rl.programs.tiles.CoreSheet` as they
are now; a change of these is a new version."""


@dataclass(frozen=True, eq=False)
class RankWeights(Ensemble[TrainedRanks]):
    """An ensemble that ranks configurations of kernels."""

    @property
    def tasks(self) -> tuple[Task, ...]:
        """The tasks that it knows."""
        return self.networks[0].config.tasks

    def scores(
        self,
        task: Task,
        kernels: KernelSet,
        kernel: Int64[np.ndarray, "R"],
        candidates: Float32[np.ndarray, "R C"],
    ) -> Float64[np.ndarray, "R"]:
        """Return [R] the members' mean score of candidates: of one kernel's, the smallest is the
        fastest; scores of different kernels do not compare.

        Args:
            task: one that it knows.
            kernels: K, each embedded once.
            kernel: [R] which of them each candidate is of.
            candidates: [R, C] features, `go_rl.predictors.ranks.data.candidate_columns`.

        Raises:
            CheckpointError: the weights know nothing of the task.
        """
        if task not in self.tasks:
            known = " and ".join(self.tasks)
            raise CheckpointError(f"weights {self.name!r} rank {known}, not {task}")
        features = kernel_features(kernels, self.vocabulary)
        told = [one.scores(task, one.embed(features), kernel, candidates) for one in self.networks]
        return np.mean(told, axis=0)


def save_rank_weights(weights: RankWeights, path: Path) -> None:
    """Write the weights; a reader never sees a half-written file.

    Raises:
        CheckpointError: the file cannot be written.
    """
    KIND.write(path, weights, _columns(), weights.members())


def load_rank_weights(source: str | Path) -> RankWeights:
    """Read weights by the name of a shipped file, or by path.

    Raises:
        CheckpointError: no such weights, damaged, of another kind or interface.
    """
    found = KIND.read(source, _columns(), _expected)
    members = (found.tree[str(i)] for i in range(found.members))
    networks = tuple(TrainedRanks(found.config, params) for params in members)
    return RankWeights(networks, **found.about)


def shipped_ranks(target: str, task: Task) -> RankWeights | None:
    """Return the weights that ship for a target and know a task; None where there are none."""
    for path in sorted(SHIPPED.glob("*.npz"), reverse=True):
        weights = load_rank_weights(path)
        if weights.target == target and task in weights.tasks:
            return weights
    return None


def _columns() -> Columns:
    names = (NODE_FEATURES, KERNEL_FEATURES, *map(candidate_columns, TASKS))
    return [list(each) for each in names]


def _expected(network: Mapping[str, Any], members: int) -> tuple[RankNetworkConfig, Any]:
    """The configuration of a file's networks, and shapes of everything that it holds."""
    embedding = KernelNetworkConfig(**network["embedding"])
    config = RankNetworkConfig(**{**network, "embedding": embedding})
    rows = {
        task: jax.ShapeDtypeStruct((1, 2, getattr(config, task)), jnp.float32)
        for task in config.tasks
    }
    one = jax.eval_shape(RankNetwork(config).init, jax.random.key(0), batch_shapes(), rows)
    return config, {str(i): one for i in range(members)}
