"""Weights of a learned cost model: several networks that learned from one data set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float32

from go_rl.predictors.kernels.features import KERNEL_FEATURES, NODE_FEATURES
from go_rl.predictors.kernels.network import KernelNetwork, KernelNetworkConfig
from go_rl.predictors.kernels.training import TrainedNetwork
from go_rl.predictors.weight_file import Columns, Ensemble, WeightKind, batch_shapes

SHIPPED = Path(__file__).parent / "pretrained"
KIND = WeightKind("kernel cost weights", "go_rl-kernel-cost", 1, SHIPPED)
MEMBERS, RANGE = "members", "range"
PROCESSOR = "processor"
"""In the card."""


@dataclass(frozen=True, eq=False)
class KernelWeights(Ensemble[TrainedNetwork]):
    """An ensemble that predicts seconds of kernels, and the sizes of those that it has seen."""

    low: Float32[np.ndarray, "W"]
    high: Float32[np.ndarray, "W"]
    """[W] least and largest `KERNEL_FEATURES`."""

    @property
    def processor(self) -> str:
        """Which one its kernels were measured on (`go_rl.core.processor`); "": unknown."""
        return str(self.card.get(PROCESSOR, ""))


def save_kernel_weights(weights: KernelWeights, path: Path) -> None:
    """Write the weights; a reader never sees a half-written file.

    Raises:
        CheckpointError: the file cannot be written.
    """
    params = {MEMBERS: weights.members(), RANGE: {"low": weights.low, "high": weights.high}}
    KIND.write(path, weights, _columns(), params)


def load_kernel_weights(source: str | Path) -> KernelWeights:
    """Read weights by the name of a shipped file, or by path.

    Raises:
        CheckpointError: no such weights, damaged, of another kind or interface.
    """
    found = KIND.read(source, _columns(), _expected)
    members = (found.tree[MEMBERS][str(i)] for i in range(found.members))
    networks = tuple(TrainedNetwork(found.config, params) for params in members)
    return KernelWeights(networks, **found.about, **found.tree[RANGE])


def _columns() -> Columns:
    return [list(NODE_FEATURES), list(KERNEL_FEATURES)]


def _expected(network: Mapping[str, Any], members: int) -> tuple[KernelNetworkConfig, Any]:
    """The configuration of a file's networks, and shapes of everything that it holds."""
    config = KernelNetworkConfig(**network)
    columns = jax.ShapeDtypeStruct((len(KERNEL_FEATURES),), jnp.float32)
    one = jax.eval_shape(KernelNetwork(config).init, jax.random.key(0), batch_shapes())
    shapes = {
        MEMBERS: {str(i): one for i in range(members)},
        RANGE: {"low": columns, "high": columns},
    }
    return config, shapes
