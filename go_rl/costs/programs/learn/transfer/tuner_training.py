"""Training of a `TunerNetwork`: epochs over shuffled programs, by RMSE or by ranks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import flax.linen as nn
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Float32, Float64, Int64

from go_rl.core.config_checks import COUNT, check_ranges
from go_rl.core.errors import TrainingError, nearest
from go_rl.costs.learning.losses import rank_loss
from go_rl.costs.learning.metrics import groups_of
from go_rl.costs.learning.training import Params, TrainRun, UpdateRule
from go_rl.costs.programs.learn.transfer.saved_network import BatchedPrograms
from go_rl.costs.programs.learn.transfer.tuner_network import StatementBatch

LOSSES = ("rmse", "rank")
FROZEN = "frozen"
"""Parameters that fine-tuning leaves as they are."""
TINY = 1e-8
"""Addend under a root, whose slope at 0 is infinite."""


@dataclass(frozen=True)
class TunerRun(TrainRun):
    """One training run; the defaults are the paper's (Table 4)."""

    updates: int = 1
    """Updates; set by training, from epochs and programs."""
    epochs: int = 200
    batch: int = 16
    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    loss: str = "rmse"
    """One of `LOSSES`: of relative throughputs, or of the order of programs of one task."""

    @property
    def what(self) -> str:
        return "training of the tuner"

    def check(self) -> None:
        check_ranges(self, self.what, TrainingError, epochs=COUNT, batch=COUNT)
        if self.loss not in LOSSES:
            self.refuse(f"no loss {self.loss!r}{nearest(self.loss, LOSSES)}")

    @property
    def rule(self) -> UpdateRule:
        """Rule of updates: Adam, at a constant rate."""
        return UpdateRule(self.updates, self.learning_rate, self.weight_decay, "adamw", "constant")


class ThroughputBatch(NamedTuple):
    """A batch of an update."""

    programs: StatementBatch
    throughput: Any
    """[B] relative to the fastest program of the task on the target."""
    group: Any
    """[B] number of the task on a target."""


@dataclass(frozen=True)
class ThroughputLoss:
    """Loss of relative throughputs."""

    network: nn.Module
    kind: str
    """Kind of loss, one of `LOSSES`."""

    def __call__(self, params: Params, batch: ThroughputBatch) -> Float[Array, ""]:
        """Return RMSE, or the logistic loss of pairs of one task on a target."""
        weights = {"params": {**params.get(FROZEN, {}), **params["params"]}}
        logit: Any = self.network.apply(weights, batch.programs)
        if self.kind == "rmse":
            return jnp.sqrt(jnp.square(nn.sigmoid(logit) - batch.throughput).mean() + TINY)
        target = jnp.stack([-batch.throughput, batch.group], axis=1)
        return rank_loss("logistic", -logit[:, None], target, jnp.ones_like(logit))


class EpochSource:
    """Batches of epochs; those of a rank loss hold whole tasks, as far as they fit."""

    def __init__(
        self,
        programs: BatchedPrograms,
        throughput: Float64[np.ndarray, "P"],
        group: Int64[np.ndarray, "P"],
        run: TunerRun,
        network: nn.Module,
    ) -> None:
        self._programs, self._run = programs, run
        self._throughput = throughput.astype(np.float32)
        self._group: Float32[np.ndarray, "P"] = group.astype(np.float32)
        self._queue: Iterator[tuple[int, np.ndarray]] = iter(())
        self.loss: Callable[[Params, Any], Array] = ThroughputLoss(network, run.loss)

    @property
    def updates(self) -> int:
        """Updates of all epochs."""
        batches = sum(-(-len(some) // self._run.batch) for some in self._programs.groups)
        return self._run.epochs * batches

    def draw(self, rng: np.random.Generator) -> ThroughputBatch:
        found = next(self._queue, None)
        if found is None:
            self._queue = iter(self._epoch(rng))
            found = next(self._queue)
        number, which = found
        programs = self._programs.batch(number, which)
        return ThroughputBatch(programs, self._throughput[which], self._group[which])

    def _epoch(self, rng: np.random.Generator) -> list[tuple[int, np.ndarray]]:
        """Batches of all programs in random order; a group's last is filled up by its first."""
        size, batches = self._run.batch, []
        for number, members in enumerate(self._programs.groups):
            order = members[self._order(members, rng)]
            order = np.resize(order, -(-len(order) // size) * size)
            batches += [(number, some) for some in order.reshape(-1, size)]
        return [batches[i] for i in rng.permutation(len(batches))]

    def _order(self, members: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        if self._run.loss == "rmse":
            return rng.permutation(len(members))
        tasks = groups_of(self._group[members].astype(np.int64))
        return np.concatenate([tasks[i] for i in rng.permutation(len(tasks))])
