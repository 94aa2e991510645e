"""Training a kernel network on measured seconds, `go_rl.costs.learning.losses.absolute_loss`."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Float32, Float64

from go_rl.costs.kernels.batch import (
    LENGTHS,
    KernelBatch,
    KernelRun,
    RandomKernels,
    batch_of,
    set_kernel_scales,
)
from go_rl.costs.kernels.ensemble import TrainedNetwork
from go_rl.costs.kernels.features import KernelFeatures
from go_rl.costs.kernels.network import KernelNetwork, KernelNetworkConfig
from go_rl.costs.learning.losses import absolute_loss
from go_rl.costs.learning.training import MemberReport, Params, initial_params, train


@dataclass(frozen=True)
class KernelTrainConfig(KernelRun):
    """One training run of a kernel network."""

    network: KernelNetworkConfig = field(default_factory=KernelNetworkConfig)
    _: KW_ONLY
    nodes: int = 2048
    """Nodes of an update, padding counted; its kernels are all of one length bucket."""
    updates: int = 5000
    learning_rate: float = 5e-3

    @property
    def what(self) -> str:
        return "kernel training"

    def check_run(self) -> None:
        """Raise a `TrainingError` for a batch that the largest kernels do not fit."""
        if self.nodes < LENGTHS[-1]:
            self.refuse(f"nodes must be >= {LENGTHS[-1]}, not {self.nodes}")


def train_absolute(
    features: KernelFeatures,
    seconds: Float64[np.ndarray, "K"],
    config: KernelTrainConfig,
    report: MemberReport | None = None,
) -> TrainedNetwork:
    """Return a network that predicts the log of the seconds and the log of its deviation.

    Args:
        features: of the kernels.
        seconds: [K] measured, each > 0.
        config: of the run; its network has two outputs.
        report: receives every hundredth update, and the last, and its loss.

    Raises:
        TrainingError: the loss became NaN.
    """
    kernels = RandomKernels(features, lambda length: config.nodes / length, config.forget)
    network = KernelNetwork(config.network)
    source = _Measured(kernels, np.log(seconds), _KernelLoss(network))
    rng = np.random.default_rng(config.seed)
    return TrainedNetwork(network, train(_initial(source, config), source, config, rng, report))


@dataclass(frozen=True)
class _KernelLoss:
    """The absolute loss on kernels and the logs [B, 1] of their seconds."""

    network: KernelNetwork

    def __call__(
        self, params: Params, batch: tuple[KernelBatch, Float[Array, "B 1"]]
    ) -> Float[Array, ""]:
        kernels, target = batch
        predicted: Any = self.network.apply(params, kernels)
        return absolute_loss(predicted, target, jnp.sign(kernels.real.sum(axis=1)))


@dataclass(frozen=True, eq=False)
class _Measured:
    """Batches of measured kernels."""

    kernels: RandomKernels
    log_seconds: Float64[np.ndarray, "K"]
    loss: _KernelLoss

    def draw(self, rng: np.random.Generator) -> tuple[KernelBatch, Float32[np.ndarray, "B 1"]]:
        which, batch = self.kernels.draw(rng)
        target = np.zeros((len(batch.opcode), 1), np.float32)
        target[: len(which), 0] = self.log_seconds[which]
        return batch, target


def _initial(source: _Measured, config: KernelTrainConfig) -> Params:
    features = source.kernels.features
    which = np.arange(min(features.num_kernels, 2))
    batch = batch_of(features, which, 2, LENGTHS[-1])
    params = initial_params(source.loss.network, jax.random.key(config.seed), batch)
    set_kernel_scales(params["scale"], features)
    bias = params["params"]["out"]["bias"]
    params["params"]["out"]["bias"] = bias.at[0].set(float(source.log_seconds.mean()))
    return params
