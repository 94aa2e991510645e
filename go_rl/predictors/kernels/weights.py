"""Weights of a learned cost model: several networks that learned from one data set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float32

from go_rl.predictors.kernels.features import KERNEL_FEATURES, NODE_FEATURES
from go_rl.predictors.kernels.network import KernelNetwork, KernelNetworkConfig
from go_rl.predictors.kernels.training import TrainedNetwork
from go_rl.predictors.weight_file import WeightKind, batch_shapes, fitting_manifest, members_of
from go_rl.runtime.parameter_file import check_parameters, parameter_tree, write_parameters

SHIPPED = Path(__file__).parent / "pretrained"
KIND = WeightKind("kernel cost weights", "go_rl-kernel-cost", 1, SHIPPED)
MEMBERS, RANGE = "members", "range"
PROCESSOR = "processor"
"""In the card."""


@dataclass(frozen=True, eq=False)
class KernelWeights:
    """An ensemble and what it knows."""

    networks: tuple[TrainedNetwork, ...]
    """Of one configuration."""
    vocabulary: tuple[str, ...]
    """Opcodes that it has seen."""
    low: Float32[np.ndarray, "W"]
    high: Float32[np.ndarray, "W"]
    """[W] least and largest `KERNEL_FEATURES` that it has seen."""
    target: str
    """Kind of chip on which its kernels were measured."""
    name: str
    card: Mapping[str, Any]
    """Model card: data set, processor, training configuration, errors."""

    @property
    def processor(self) -> str:
        """Which one its kernels were measured on (`go_rl.core.processor`); "": unknown."""
        return str(self.card.get(PROCESSOR, ""))


def save_kernel_weights(weights: KernelWeights, path: Path) -> None:
    """Write the weights; a reader never sees a half-written file.

    Raises:
        CheckpointError: the file cannot be written.
    """
    members = {str(i): each.params for i, each in enumerate(weights.networks)}
    params = {MEMBERS: members, RANGE: {"low": weights.low, "high": weights.high}}
    manifest = {
        **KIND.manifest(_columns()),
        "name": weights.name,
        "target": weights.target,
        "members": len(members),
        "network": asdict(weights.networks[0].config),
        "vocabulary": list(weights.vocabulary),
        "card": dict(weights.card),
    }
    write_parameters(path, params, manifest)


def load_kernel_weights(source: str | Path) -> KernelWeights:
    """Read weights by the name of a shipped file, or by path.

    Raises:
        CheckpointError: no such weights, damaged, of another kind or interface.
    """
    path = KIND.path(source)
    manifest, arrays = KIND.read(path, _columns())
    with fitting_manifest(path):
        config = KernelNetworkConfig(**manifest["network"])
        members, vocabulary = members_of(manifest, arrays), tuple(manifest["vocabulary"])
        target, name, card = manifest["target"], manifest["name"], manifest["card"]
        expected = _expected(config, members)
    check_parameters(path, arrays, expected)
    tree = parameter_tree(arrays)
    networks = tuple(TrainedNetwork(config, tree[MEMBERS][str(i)]) for i in range(members))
    reach = tree[RANGE]
    return KernelWeights(networks, vocabulary, reach["low"], reach["high"], target, name, card)


def _columns() -> list[list[str]]:
    return [list(NODE_FEATURES), list(KERNEL_FEATURES)]


def _expected(config: KernelNetworkConfig, members: int) -> Any:
    """Shapes of everything that a file holds."""
    columns = jax.ShapeDtypeStruct((len(KERNEL_FEATURES),), jnp.float32)
    one = jax.eval_shape(KernelNetwork(config).init, jax.random.key(0), batch_shapes())
    return {
        MEMBERS: {str(i): one for i in range(members)},
        RANGE: {"low": columns, "high": columns},
    }
