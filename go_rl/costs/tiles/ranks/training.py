"""Training a ranking network: which of a kernel's candidates is faster, flags and tiles together.

The shared embedding learns from every kind of candidates in each update.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from typing import Any, get_args

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Float32, Float64

from go_rl.costs.kernels.batch import (
    KernelBatch,
    KernelRun,
    RandomKernels,
    over_batches,
    set_kernel_scales,
)
from go_rl.costs.kernels.features import KernelFeatures, kernel_features
from go_rl.costs.learning.losses import RankLoss, group_loss
from go_rl.costs.learning.training import (
    MemberReport,
    Params,
    bins_of,
    initial_params,
    scale_of,
    train,
)
from go_rl.costs.tiles.ranks.data import (
    CandidateBatch,
    CandidateKind,
    Candidates,
    RankGroups,
    candidate_batch,
)
from go_rl.costs.tiles.ranks.network import RankNetwork, RankNetworkConfig

CANDIDATES = 32
"""Most candidates of a group in an update."""
ROWS = (256, 8192)
"""Candidates that are scored at once."""


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
    """Groups of each kind in an update, all of one length bucket."""
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


@dataclass(frozen=True, eq=False)
class TrainedRanks:
    """A ranking network and its weights."""

    config: RankNetworkConfig
    params: Params

    def embed(self, features: KernelFeatures) -> Float32[np.ndarray, "K E"]:
        """Return [K, E] an embedding of each kernel."""
        compute = partial(_embed, self.config, self.params)
        return over_batches(features, self.config.embedding.outputs, compute)

    def scores(
        self, embedded: Float32[np.ndarray, "K E"], inputs: Candidates
    ) -> Float64[np.ndarray, "R"]:
        """Return [R] scores of candidates, given what `embed` made of their kernels."""
        kernel, features = inputs.kernel, inputs.features
        found = np.zeros(len(kernel))
        size = ROWS[0] if len(kernel) <= ROWS[0] else ROWS[1]
        for start in range(0, len(kernel), size):
            part = slice(start, start + size)
            count = len(kernel[part])
            wide = [_padded(rows, size) for rows in (embedded[kernel[part]], features[part])]
            found[part] = np.asarray(_score(self.config, inputs.kind, self.params, *wide))[:count]
        return found


def _padded(rows: Float32[np.ndarray, "r F"], size: int) -> Float32[np.ndarray, "S F"]:
    return np.concatenate([rows, np.zeros((size - len(rows), rows.shape[1]), np.float32)])


@partial(jax.jit, static_argnums=0)
def _embed(config: RankNetworkConfig, params: Params, batch: KernelBatch) -> Any:
    return RankNetwork(config).apply(params, batch, method="embed")


@partial(jax.jit, static_argnums=(0, 1))
def _score(
    config: RankNetworkConfig, kind: CandidateKind, params: Params, kernel: Any, candidates: Any
) -> Any:
    return RankNetwork(config).apply(params, kind, kernel, candidates, method="score")


def train_ranks(
    groups: Sequence[RankGroups],
    vocabulary: tuple[str, ...],
    config: RankTrainConfig,
    report: MemberReport | None = None,
) -> TrainedRanks:
    """Return a network that ranks candidates of every kind given.

    Args:
        groups: of one kind or of both.
        vocabulary: opcodes that the network tells apart.
        config: of the run; sizes of its network that follow from the data are set here.
        report: receives every hundredth update, and the last, and its loss.

    Raises:
        TrainingError: the loss became NaN.
    """
    columns = {each.kind: each.candidates.shape[1] for each in groups}
    embedding = replace(config.network.embedding, opcodes=len(vocabulary))
    network = replace(config.network, embedding=embedding, **{"flags": 0, "tiles": 0} | columns)
    config = replace(config, network=network)
    sources = [_KindBatches(each, vocabulary, config) for each in groups]
    rng = np.random.default_rng(config.seed)
    params = train(_initial(sources, config, rng), sources, config, rng, report)
    return TrainedRanks(network, params)


@dataclass(frozen=True)
class _RankLoss:
    """`group_loss` of candidates of one kind on kernels and their `CandidateBatch`."""

    network: RankNetworkConfig
    kind: CandidateKind
    function: RankLoss
    most: float | None

    def __call__(
        self, params: Params, batch: tuple[KernelBatch, CandidateBatch]
    ) -> Float[Array, ""]:
        kernels, rows = batch
        wanted: Any = {self.kind: rows.features}
        scores: Any = RankNetwork(self.network).apply(params, kernels, wanted)
        log_seconds, real = jnp.asarray(rows.log_seconds), jnp.asarray(rows.real)
        return group_loss(self.function, scores[self.kind], log_seconds, real, self.most)


class _KindBatches:
    """Batches of candidates of one kind."""

    def __init__(
        self, groups: RankGroups, vocabulary: tuple[str, ...], config: RankTrainConfig
    ) -> None:
        self.groups = groups
        self.loss = _RankLoss(config.network, groups.kind, config.loss, config.most)
        features = kernel_features(groups.kernels, vocabulary)
        self.kernels = RandomKernels(features, lambda _: config.batch, config.forget)
        self._width = min(int(np.diff(groups.first).max()), CANDIDATES)

    def draw(self, rng: np.random.Generator) -> tuple[KernelBatch, CandidateBatch]:
        which, batch = self.kernels.draw(rng)
        shape = (len(batch.opcode), self._width)
        return batch, candidate_batch(self.groups, which, shape, rng)


def _initial(
    sources: list[_KindBatches], config: RankTrainConfig, rng: np.random.Generator
) -> Params:
    batch = sources[0].draw(rng)[0]
    rows = {s.groups.kind: s.draw(rng)[1].features for s in sources}
    key = jax.random.key(config.seed)
    params = initial_params(RankNetwork(config.network), key, batch, rows)
    scale = params["scale"]
    set_kernel_scales(scale["embedding"], [source.kernels.features for source in sources])
    for source in sources:
        name, groups = f"heads_{source.groups.kind}", source.groups
        scale[name]["candidate_scale"] = scale_of(groups.candidates)
        if bins := config.network.bins:
            scale[name]["candidate_bins"] = bins_of(groups.candidates, bins)
        if config.loss == "mse":
            bias = jnp.full(1, np.log(groups.seconds).mean(), jnp.float32)
            params["params"][name]["out"]["bias"] = bias
    return params
