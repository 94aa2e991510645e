"""Training a ranking network: which setting of flags is faster for a kernel."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, NamedTuple, get_args

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Float32

from go_rl.costs.kernels.batch import KernelBatch, KernelRun, RandomKernels, set_kernel_scales
from go_rl.costs.kernels.ensemble import TrainedNetwork
from go_rl.costs.kernels.features import kernel_features
from go_rl.costs.kernels.ranks.flag_times import FlagTimes
from go_rl.costs.kernels.ranks.network import RankNetwork, RankNetworkConfig
from go_rl.costs.learning.losses import RankLoss, group_loss
from go_rl.costs.learning.training import (
    MemberReport,
    Params,
    bins_of,
    initial_params,
    scale_of,
    train,
)


@dataclass(frozen=True)
class RankTrainConfig(KernelRun):
    """One training run of a ranking network."""

    network: RankNetworkConfig = field(default_factory=RankNetworkConfig)
    _: KW_ONLY
    loss: RankLoss = "hinge"
    """``hinge`` or ``logistic``: pairwise rank loss; ``mse``: squared error of log seconds."""
    most: float | None = None
    """Cap of a pairwise loss: pairs count by how far apart the logs of their seconds are, up to
    this, for which of two almost equal ones is faster is noise; None: all alike, as published,
    which ``experiments/kernels/kernel_ranks.py`` finds as good."""
    batch: int = 32
    """Kernels in an update, all of one length bucket."""
    updates: int = 1000
    learning_rate: float = 2e-3

    @property
    def what(self) -> str:
        return "rank training"

    def check_run(self) -> None:
        """Raise a `TrainingError` for a loss or a batch that does not exist."""
        if self.loss not in get_args(RankLoss):
            self.refuse(f"loss must be one of {', '.join(get_args(RankLoss))}, not {self.loss!r}")
        if self.batch < 1:
            self.refuse(f"batch must be >= 1, not {self.batch}")
        if self.most is not None and not self.most > 0:
            self.refuse(f"most must be > 0 or None, not {self.most}")


def train_ranks(
    times: FlagTimes,
    vocabulary: tuple[str, ...],
    config: RankTrainConfig,
    report: MemberReport | None = None,
) -> TrainedNetwork:
    """Return a network that ranks settings of flags.

    Args:
        times: what it learns from.
        vocabulary: opcodes that the network tells apart.
        config: of the run; the opcodes of its network are set here.
        report: receives every hundredth update, and the last, and its loss.

    Raises:
        TrainingError: the loss became NaN.
    """
    embedding = replace(config.network.embedding, opcodes=len(vocabulary))
    config = replace(config, network=replace(config.network, embedding=embedding))
    features = kernel_features(times.kernels, vocabulary)
    kernels = RandomKernels(features, lambda _: config.batch, config.forget)
    network = RankNetwork(config.network)
    source = _Timed(kernels, times, _RankLoss(network, config.loss, config.most))
    rng = np.random.default_rng(config.seed)
    params = train(_initial(source, config, rng), source, config, rng, report)
    return TrainedNetwork(network, params)


class TimeBatch(NamedTuple):
    """Times of ``B`` kernels, some of them padding, under ``S`` settings."""

    log_seconds: Float32[np.ndarray, "B S"]
    real: Float32[np.ndarray, "B S"]
    """[B, S] 1 where there is a time, else 0."""


@dataclass(frozen=True)
class _RankLoss:
    """`group_loss` on kernels and their `TimeBatch`."""

    network: RankNetwork
    function: RankLoss
    most: float | None

    def __call__(self, params: Params, batch: tuple[KernelBatch, TimeBatch]) -> Float[Array, ""]:
        kernels, times = batch
        scores: Any = self.network.apply(params, kernels)
        log_seconds, real = jnp.asarray(times.log_seconds), jnp.asarray(times.real)
        return group_loss(self.function, scores, log_seconds, real, self.most)


@dataclass(frozen=True, eq=False)
class _Timed:
    """Batches of timed kernels."""

    kernels: RandomKernels
    times: FlagTimes
    loss: _RankLoss

    def draw(self, rng: np.random.Generator) -> tuple[KernelBatch, TimeBatch]:
        which, batch = self.kernels.draw(rng)
        known = self.times.known[which]
        shape, rows = (len(batch.opcode), known.shape[1]), slice(0, len(which))
        log_seconds, real = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
        log_seconds[rows] = np.log(np.where(known, self.times.seconds[which], 1.0))
        real[rows] = known
        return batch, TimeBatch(log_seconds, real)


def _initial(source: _Timed, config: RankTrainConfig, rng: np.random.Generator) -> Params:
    batch = source.draw(rng)[0]
    params = initial_params(source.loss.network, jax.random.key(config.seed), batch)
    scale, times = params["scale"], source.times
    set_kernel_scales(scale["embedding"], source.kernels.features)
    settings = np.eye(times.seconds.shape[1], dtype=np.float32)[np.nonzero(times.known)[1]]
    scale["setting_scale"] = scale_of(settings)
    if bins := config.network.bins:
        scale["setting_bins"] = bins_of(settings, bins)
    if config.loss == "mse":
        bias = jnp.full(1, np.log(times.seconds[times.known]).mean(), jnp.float32)
        params["params"]["out"]["bias"] = bias
    return params
