"""`NetworkRival`: a network that learned the logarithm of seconds of programs, in batches.

A rival says which programs may share a batch (a *group*: equal trees, sequences of like length)
and what its network reads of them; drawing, losses and batch sizes are written here once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, TypeVar

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Float64

from go_rl.costs.learning.training import (
    OptimizerName,
    Params,
    ScheduleName,
    TrainRun,
    UpdateRule,
    train,
)
from go_rl.costs.programs.learn.examples import ProgramExamples, ProgramInputs
from go_rl.costs.programs.learn.label_transform import LabelTransform
from go_rl.costs.programs.learn.transfer.saved_network import SIZES, BatchedPrograms, outputs

LARGEST_ERROR = 3.0
"""Of logarithms, in a percentage loss: beyond it the slope is 0."""


@dataclass(frozen=True)
class RivalRun(TrainRun):
    """One training run."""

    updates: int = 1500
    learning_rate: float = 1e-3
    batch: int = 128
    """Most programs of an update, one of `SIZES`; a small group has fewer."""
    loss: Literal["mse", "mape"] = "mse"
    """``mse`` of logarithms; ``mape``: mean percentage error of seconds."""
    optimizer: OptimizerName = "adamw"
    schedule: ScheduleName = "cosine"

    @property
    def what(self) -> str:
        """The run in messages."""
        return "training of a rival"

    def check(self) -> None:
        """Accept all: runs are written in this folder."""

    @property
    def rule(self) -> UpdateRule:
        """Of updates."""
        return UpdateRule(
            self.updates, self.learning_rate, self.weight_decay, self.optimizer, self.schedule
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
    """``mse`` or ``mape``, see `RivalRun`."""

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
        number = int(rng.choice(len(self._chance), p=self._chance))
        members = self._programs.groups[number]
        most = min(len(members), self._largest)
        size = max((s for s in SIZES if s <= most), default=SIZES[0])
        which = rng.choice(members, size, replace=len(members) < size)
        self.drawn += min(size, len(members))
        programs = self._programs.batch(number, which)
        return LabelledBatch(programs, self._labels[which], self._deviation)


Learned = TypeVar("Learned", bound="NetworkRival")


@dataclass(frozen=True, eq=False)
class NetworkRival(ABC):
    """Abstract: its network's output is [B] standardised logarithms of seconds."""

    network: nn.Module
    params: Params
    scale: Mapping[str, np.ndarray]
    """Means and deviations of inputs."""
    labels: LabelTransform
    """Transform of outputs into seconds."""
    drawn: int
    """Programs that updates read."""

    what: ClassVar[str]
    network_type: ClassVar[type[nn.Module]]
    run_defaults: ClassVar[RivalRun]

    @classmethod
    @abstractmethod
    def scale_of(cls, inputs: ProgramInputs) -> dict[str, np.ndarray]:
        """Return what standardises inputs like these."""

    @classmethod
    @abstractmethod
    def batched(cls, inputs: ProgramInputs, scale: Mapping[str, np.ndarray]) -> BatchedPrograms:
        """Return what the network reads.

        Raises:
            TrainingError: the programs lack what it reads.
        """

    @classmethod
    def fit(
        cls: type[Learned],
        examples: ProgramExamples,
        run: RivalRun,
        network: nn.Module | None = None,
    ) -> Learned:
        """Return a network that learned from examples.

        Args:
            examples: with times.
            run: of training.
            network: of other sizes than the usual ones.

        Raises:
            TrainingError: the programs lack what it reads, or the loss became NaN.
        """
        scale, network = cls.scale_of(examples.inputs), network or cls.network_type()
        programs = cls.batched(examples.inputs, scale)
        transform = LabelTransform.fit("log", examples.seconds)
        labels = (transform.labels(examples.seconds) - transform.mean) / transform.deviation
        source = GroupedSource(programs, labels, transform.deviation, run, network)
        first = programs.batch(0, programs.groups[0][:1])
        params = jax.jit(network.init)(jax.random.key(run.seed), first)
        rng = np.random.default_rng(run.seed)
        params = train(params, source, run, rng, None, run.rule)
        return cls(network, params, scale, transform, source.drawn)

    def predict(self, inputs: ProgramInputs) -> Float64[np.ndarray, "P"]:
        """Return [P] seconds of programs."""
        if not inputs.num_programs:
            return np.zeros(0)
        programs = self.batched(inputs, self.scale)
        out = outputs(self.network, self.params, programs, inputs.num_programs)
        labels = self.labels.mean + self.labels.deviation * out.astype(np.float64)
        return self.labels.seconds(labels)
