"""Training of networks that read programs in batches, programs of one group a batch.

A rival says which programs may share a batch (a *group*: equal trees, sequences of like length)
and what its network reads of them; drawing, losses and batch sizes are written here once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol, runtime_checkable

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Float32, Float64, Int64

from go_rl.core.errors import nearest
from go_rl.costs.learning.training import OptimizerName, Params, ScheduleName, TrainRun, UpdateRule

SIZES = (8, 32, 128, 512)
"""Programs of a batch; others are filled up or cut, so that few shapes are compiled."""
LARGEST_ERROR = 3.0
"""Of logarithms, in a percentage loss: beyond it the slope is 0."""
LOSSES = ("mse", "mape")


@runtime_checkable
class BatchedPrograms(Protocol):
    """Programs as a network reads them."""

    @property
    def groups(self) -> Sequence[Int64[np.ndarray, "J"]]:
        """Programs that may share a batch; each program is in one group."""
        ...

    def batch(self, group: int, which: Int64[np.ndarray, "B"]) -> Any:
        """Return what the network reads of programs of a group."""
        ...


@dataclass(frozen=True)
class RivalRun(TrainRun):
    """One training run."""

    steps: int = 1500
    learning_rate: float = 1e-3
    batch: int = 128
    """Most programs of an update, one of `SIZES`; a small group has fewer."""
    loss: str = "mse"
    """One of `LOSSES`: ``mse`` of logarithms; ``mape``: mean percentage error of seconds."""
    optimizer: OptimizerName = "adamw"
    schedule: ScheduleName = "cosine"

    @property
    def what(self) -> str:
        """The run in messages."""
        return "training of a rival"

    def check(self) -> None:
        """See `TrainRun`."""
        if self.batch not in SIZES:
            self.refuse(f"batch must be one of {', '.join(map(str, SIZES))}, not {self.batch}")
        if self.loss not in LOSSES:
            self.refuse(f"no loss {self.loss!r}{nearest(self.loss, LOSSES)}")

    @property
    def rule(self) -> UpdateRule:
        """Of updates."""
        return UpdateRule(
            self.steps, self.learning_rate, self.weight_decay, self.optimizer, self.schedule
        )


class LabelledBatch(NamedTuple):
    """A batch of an update."""

    programs: Any
    labels: Any
    """[B] standardised logarithms of seconds."""
    deviation: Any
    """That standardised them."""


@dataclass(frozen=True)
class LogLoss:
    """Loss of standardised logarithms."""

    network: nn.Module
    kind: str
    """One of `LOSSES`."""

    def __call__(self, params: Params, batch: LabelledBatch) -> Float[Array, ""]:
        """Return the loss of a batch."""
        out: Any = self.network.apply(params, batch.programs)
        error = out - batch.labels
        if self.kind == "mse":
            return jnp.square(error).mean()
        ratio = jnp.clip(batch.deviation * error, -LARGEST_ERROR, LARGEST_ERROR)
        return jnp.abs(jnp.expm1(ratio)).mean()


class GroupedSource:
    """Draws batches, a group by its share of all programs; counts the programs drawn."""

    def __init__(
        self,
        programs: BatchedPrograms,
        labels: Float64[np.ndarray, "P"],
        deviation: float,
        run: RivalRun,
        network: nn.Module,
    ) -> None:
        self._programs, self._labels = programs, labels.astype(np.float32)
        self._deviation, self._largest = np.float32(deviation), run.batch
        share = np.array([len(group) for group in programs.groups], np.float64)
        self._chance = share / share.sum()
        self.loss: Callable[[Params, Any], Array] = LogLoss(network, run.loss)
        self.drawn = 0

    def draw(self, rng: np.random.Generator) -> LabelledBatch:
        """See `go_rl.costs.learning.training.BatchSource`."""
        number = int(rng.choice(len(self._chance), p=self._chance))
        members = self._programs.groups[number]
        size = _size_within(len(members), self._largest)
        which = rng.choice(members, size, replace=len(members) < size)
        self.drawn += min(size, len(members))
        programs = self._programs.batch(number, which)
        return LabelledBatch(programs, self._labels[which], self._deviation)


def _size_within(members: int, largest: int) -> int:
    """The largest size that so many programs fill; the smallest for fewer."""
    return max((s for s in SIZES if s <= min(members, largest)), default=SIZES[0])


def outputs(
    network: nn.Module, params: Params, programs: BatchedPrograms, count: int, width: int = 0
) -> Float32[np.ndarray, "P *width"]:
    """Return [P] outputs, or [P, width] where each is a vector; batches are filled up by repeating
    their last program."""
    found = np.zeros((count, width) if width else count, np.float32)
    for number, members in enumerate(programs.groups):
        for start in range(0, len(members), SIZES[-1]):
            which = members[start : start + SIZES[-1]]
            size = next(size for size in SIZES if size >= len(which))
            filled = np.concatenate([which, np.full(size - len(which), which[-1])])
            out = _apply(network, params, programs.batch(number, filled))
            found[which] = np.asarray(out)[: len(which)]
    return found


@partial(jax.jit, static_argnums=0)
def _apply(network: nn.Module, params: Params, batch: Any) -> Any:
    return network.apply(params, batch)
