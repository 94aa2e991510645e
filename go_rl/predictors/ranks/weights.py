"""Weights of ranking networks: several that learned from the same data sets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
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
from go_rl.predictors.weight_file import (
    Columns,
    WeightKind,
    batch_shapes,
    fitting_manifest,
    members_of,
)
from go_rl.runtime.parameter_file import check_parameters, parameter_tree, write_parameters

SHIPPED = Path(__file__).parent / "pretrained"
KIND = WeightKind("rank weights", "go_rl-kernel-ranks", 2, SHIPPED)
"""Version 2: features of tilings assume the constants of `go_rl.programs.tiles.CoreSheet` as they
are now; a change of these is a new version."""


@dataclass(frozen=True, eq=False)
class RankWeights:
    """An ensemble and what it knows."""

    networks: tuple[TrainedRanks, ...]
    """Of one configuration."""
    vocabulary: tuple[str, ...]
    """Opcodes that it has seen."""
    target: str
    """Kind of chip on which its kernels were measured."""
    name: str
    card: Mapping[str, Any]
    """Model card: data sets, training configuration."""

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
    manifest = {
        **KIND.manifest(_columns()),
        "name": weights.name,
        "target": weights.target,
        "members": len(weights.networks),
        "network": asdict(weights.networks[0].config),
        "vocabulary": list(weights.vocabulary),
        "card": dict(weights.card),
    }
    write_parameters(path, {str(i): x.params for i, x in enumerate(weights.networks)}, manifest)


def load_rank_weights(source: str | Path) -> RankWeights:
    """Read weights by the name of a shipped file, or by path.

    Raises:
        CheckpointError: no such weights, damaged, of another kind or interface.
    """
    path = KIND.path(source)
    manifest, arrays = KIND.read(path, _columns())
    with fitting_manifest(path):
        told = dict(manifest["network"])
        config = RankNetworkConfig(KernelNetworkConfig(**told.pop("embedding")), **told)
        members, vocabulary = members_of(manifest, arrays), tuple(manifest["vocabulary"])
        target, name, card = manifest["target"], manifest["name"], manifest["card"]
        one = _expected(config)
    check_parameters(path, arrays, {str(i): one for i in range(members)})
    tree = parameter_tree(arrays)
    networks = tuple(TrainedRanks(config, tree[str(i)]) for i in range(members))
    return RankWeights(networks, vocabulary, target, name, card)


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


def _expected(config: RankNetworkConfig) -> Any:
    """Shapes of a network's parameters."""
    rows = {
        task: jax.ShapeDtypeStruct((1, 2, getattr(config, task)), jnp.float32)
        for task in config.tasks
    }
    return jax.eval_shape(RankNetwork(config).init, jax.random.key(0), batch_shapes(), rows)
