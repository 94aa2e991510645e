"""Training a ranking network: which of a kernel's candidates is faster, for all tasks together.

An update adds the gradients of one batch of groups of every task, so that the shared embedding
learns from all of them. Losses are within groups: the pairwise rank loss of the talk with the hinge
or the logistic function; or, for comparison, the squared error of the log of the seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, NamedTuple, get_args

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Float32, Float64, Int64

from go_rl.core import TrainingError
from go_rl.predictors.kernels.batch import LENGTHS, KernelBatch, all_batches, batch_of, lengths
from go_rl.predictors.kernels.features import KernelFeatures, kernel_features
from go_rl.predictors.kernels.training import (
    bins_of,
    check_learning,
    forgetful,
    learning_rule,
    rank_loss,
    scale_of,
)
from go_rl.predictors.ranks.data import CandidateBatch, RankGroups, Task, candidate_batch
from go_rl.predictors.ranks.network import RankNetwork, RankNetworkConfig

RankLoss = Literal["hinge", "logistic", "mse"]
CANDIDATES = 32
"""Most candidates of a group in an update."""
ROWS = (256, 8192)
"""Candidates that are scored at once."""
REPORTED = 100
Params = Any


@dataclass(frozen=True)
class RankTrainConfig:
    """One training run; the same configuration and machine give the same weights."""

    network: RankNetworkConfig = field(default_factory=RankNetworkConfig)
    loss: RankLoss = "hinge"
    """``hinge`` or ``logistic``: pairwise rank loss; ``mse``: squared error of log seconds."""
    most: float | None = None
    """Of a pairwise loss: pairs count by how far apart the logs of their seconds are, up to this,
    for which of two almost equal ones is faster is noise; None: all alike, as published, which
    ``experiments/kernel_ranks.py`` finds as good."""
    steps: int = 1000
    """Updates."""
    batch: int = 32
    """Groups of each task in an update, all of one length bucket."""
    learning_rate: float = 2e-3
    """AdamW's largest; warm-up over a twentieth of the steps, then a cosine."""
    weight_decay: float = 1e-2
    forget: float = 0.02
    """Share of the opcodes that an update replaces by the unknown one, so that it is learned."""
    seed: int = 0

    def __post_init__(self) -> None:
        if self.loss not in get_args(RankLoss):
            known = ", ".join(get_args(RankLoss))
            raise TrainingError(f"rank training: loss must be one of {known}, not {self.loss!r}")
        for name in ("steps", "batch"):
            if getattr(self, name) < 1:
                raise TrainingError(f"rank training: {name} must be >= 1")
        if self.most is not None and not self.most > 0:
            raise TrainingError(f"rank training: most must be > 0 or None, not {self.most}")
        check_learning("rank training", self.learning_rate, self.forget)


@dataclass(frozen=True, eq=False)
class TrainedRanks:
    """A ranking network and its weights."""

    config: RankNetworkConfig
    params: Params

    def embed(self, features: KernelFeatures) -> Float32[np.ndarray, "K E"]:
        """Return [K, E] an embedding of each kernel."""
        found = np.zeros((features.num_kernels, self.config.embedding.outputs), np.float32)
        for which, batch in all_batches(features):
            found[which] = np.asarray(_embed(self.config, self.params, batch))[: len(which)]
        return found

    def scores(
        self,
        task: Task,
        embedded: Float32[np.ndarray, "K E"],
        kernel: Int64[np.ndarray, "R"],
        candidates: Float32[np.ndarray, "R C"],
    ) -> Float64[np.ndarray, "R"]:
        """Return [R] scores of candidates: of one kernel's, the smallest is the fastest.

        Args:
            task: one that the network knows.
            embedded: what `embed` gave.
            kernel: [R] the row of ``embedded`` that each candidate belongs to.
            candidates: [R, C] their features.
        """
        found = np.zeros(len(kernel))
        size = ROWS[0] if len(kernel) <= ROWS[0] else ROWS[1]
        for start in range(0, len(kernel), size):
            part = slice(start, start + size)
            count = len(kernel[part])
            wide = [_padded(rows, size) for rows in (embedded[kernel[part]], candidates[part])]
            found[part] = np.asarray(_score(self.config, task, self.params, *wide))[:count]
        return found


def _padded(rows: Float32[np.ndarray, "r F"], size: int) -> Float32[np.ndarray, "S F"]:
    return np.concatenate([rows, np.zeros((size - len(rows), rows.shape[1]), np.float32)])


@partial(jax.jit, static_argnums=0)
def _embed(config: RankNetworkConfig, params: Params, batch: KernelBatch) -> Any:
    return RankNetwork(config).apply(params, batch, method="embed")


@partial(jax.jit, static_argnums=(0, 1))
def _score(
    config: RankNetworkConfig, task: Task, params: Params, kernel: Any, candidates: Any
) -> Any:
    return RankNetwork(config).apply(params, task, kernel, candidates, method="score")


def group_loss(
    loss: RankLoss,
    score: Float[Array, "B C"],
    log_seconds: Float[Array, "B C"],
    real: Float[Array, "B C"],
    most: float | None = None,
) -> Float[Array, ""]:
    """Return the loss of scores: of a pairwise one, the mean over groups of the mean over pairs
    that differ in time.

    Args:
        loss: which.
        score: [B, C] of the candidates, smaller for faster.
        log_seconds: [B, C] what was measured.
        real: [B, C] 1 for candidates, 0 for padding.
        most: see `RankTrainConfig.most`.
    """
    if loss == "mse":
        return (jnp.square(score - log_seconds) * real).sum() / jnp.maximum(real.sum(), 1.0)
    target = jnp.stack([log_seconds, jnp.zeros_like(log_seconds)], axis=-1)
    of_group = jax.vmap(partial(rank_loss, loss, most=most))(score[..., None], target, real)
    counted = jnp.sign(real.sum(axis=1))
    return (of_group * counted).sum() / jnp.maximum(counted.sum(), 1.0)


def train_ranks(
    groups: Mapping[Task, RankGroups],
    vocabulary: tuple[str, ...],
    config: RankTrainConfig,
    report: Callable[[int, float], None] | None = None,
) -> TrainedRanks:
    """Return a network that ranks the candidates of every task given.

    Args:
        groups: by task.
        vocabulary: opcodes that the network tells apart.
        config: of the run; sizes of its network that follow from the data are set here.
        report: is told the update and the loss, every hundredth time.

    Raises:
        TrainingError: no task is given, or the loss became NaN.
    """
    if not groups:
        raise TrainingError("rank training: no groups; give those of flags, of tiles or of both")
    columns = {task: each.candidates.shape[1] for task, each in groups.items()}
    embedding = replace(config.network.embedding, opcodes=len(vocabulary))
    network = replace(config.network, embedding=embedding, **{"flags": 0, "tiles": 0} | columns)
    config = replace(config, network=network)
    sources = [_Source(each, vocabulary, config) for each in groups.values()]
    return TrainedRanks(network, _learned(sources, config, report))


class _Source:
    """Where the batches of a task come from; their shapes are few."""

    def __init__(
        self, groups: RankGroups, vocabulary: tuple[str, ...], config: RankTrainConfig
    ) -> None:
        self.groups = groups
        self.features = kernel_features(groups.kernels, vocabulary)
        self._config = config
        bucket = lengths(self.features)
        self._buckets = [(n, np.flatnonzero(bucket == n)) for n in LENGTHS if n in bucket]
        self._chance = [len(members) / groups.count for _, members in self._buckets]
        self._width = min(int(np.diff(groups.first).max()), CANDIDATES)

    def draw(self, rng: np.random.Generator) -> tuple[KernelBatch, CandidateBatch]:
        """Return a random batch of groups of one length bucket."""
        size = self._config.batch
        length, members = self._buckets[int(rng.choice(len(self._buckets), p=self._chance))]
        which = rng.choice(members, min(size, len(members)), replace=False)
        batch = batch_of(self.features, which, size, length)
        batch = forgetful(batch, self._config.forget, rng)
        return batch, candidate_batch(self.groups, which, (size, self._width), rng)


def _learned(
    sources: list[_Source], config: RankTrainConfig, report: Callable[[int, float], None] | None
) -> Params:
    rng = np.random.default_rng(config.seed)
    params = _initial(sources, config, rng)
    rule = _Rule(config.steps, config.learning_rate, config.weight_decay)
    state = rule.transformation().init(params["params"])
    goal = _Goal(config.loss, config.most)
    for i in range(1, config.steps + 1):
        drawn = [(source.groups.task, *source.draw(rng)) for source in sources]
        found = [_slope(config.network, goal, task, params, *rows) for task, *rows in drawn]
        weights, state = _change(rule, params["params"], state, [slope for _, slope in found])
        params = {**params, "params": weights}
        if i % REPORTED == 0 or i == config.steps:
            _told(i, float(sum(loss for loss, _ in found)), config, report)
    return params


def _told(
    step: int, loss: float, config: RankTrainConfig, report: Callable[[int, float], None] | None
) -> None:
    if not np.isfinite(loss):
        raise TrainingError(
            f"rank training: the loss became {loss}; lower learning_rate ({config.learning_rate})"
        )
    if report is not None:
        report(step, loss)


def _initial(sources: list[_Source], config: RankTrainConfig, rng: np.random.Generator) -> Params:
    batch = sources[0].draw(rng)[0]
    rows = {s.groups.task: s.draw(rng)[1].features for s in sources}
    params = _drawn(config.network, jax.random.key(config.seed), batch, rows)
    scale = params["scale"]
    features = [source.features for source in sources]
    scale["embedding"]["node_scale"] = scale_of(np.concatenate([f.nodes for f in features]))
    scale["embedding"]["whole_scale"] = scale_of(np.concatenate([f.whole for f in features]))
    for source in sources:
        name, groups = f"heads_{source.groups.task}", source.groups
        scale[name]["candidate_scale"] = scale_of(groups.candidates)
        if bins := config.network.bins:
            scale[name]["candidate_bins"] = bins_of(groups.candidates, bins)
        if config.loss == "mse":
            bias = jnp.full(1, np.log(groups.seconds).mean(), jnp.float32)
            params["params"][name]["out"]["bias"] = bias
    return params


class _Goal(NamedTuple):
    """What is made small."""

    loss: RankLoss
    most: float | None


class _Rule(NamedTuple):
    """How gradients change the weights."""

    steps: int
    learning_rate: float
    weight_decay: float

    def transformation(self) -> optax.GradientTransformation:
        return learning_rule(*self)


@partial(jax.jit, static_argnums=0)
def _drawn(config: RankNetworkConfig, key: Array, batch: KernelBatch, rows: Any) -> Params:
    return RankNetwork(config).init(key, batch, rows)


@partial(jax.jit, static_argnums=(0, 1, 2))
def _slope(
    config: RankNetworkConfig,
    goal: _Goal,
    task: Task,
    params: Params,
    batch: KernelBatch,
    rows: Any,
) -> Any:
    """The loss and its gradient, of a task on a batch; ``rows``: a `CandidateBatch`."""

    def cost(weights: Any) -> Array:
        known = {**params, "params": weights}
        scores: Any = RankNetwork(config).apply(known, batch, {task: rows.features})
        return group_loss(goal.loss, scores[task], rows.log_seconds, rows.real, goal.most)

    return jax.value_and_grad(cost)(params["params"])


@partial(jax.jit, static_argnums=0)
def _change(rule: _Rule, weights: Any, state: Any, gradients: list[Any]) -> tuple[Any, Any]:
    """New weights and state of the rule, by the sum of gradients."""
    total = jax.tree.map(lambda *each: sum(each), *gradients)
    step, after = rule.transformation().update(total, state, weights)
    return optax.apply_updates(weights, step), after
