"""Training a `ProgramNetwork`, and fine-tuning it with unlabelled inputs of another domain (CDMPP,
equations 3 and 7)."""

from __future__ import annotations

from collections import deque
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Any, Literal, NamedTuple, get_args

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Float32, Float64, Int64

from go_rl.core import TrainingError
from go_rl.core.config_checks import COUNT, NOT_NEGATIVE, check_ranges
from go_rl.core.errors import nearest
from go_rl.costs.learning.training import (
    MemberReport,
    OptimizerName,
    Params,
    ScheduleName,
    TrainRun,
    UpdateRule,
    train,
)
from go_rl.costs.programs.learn.central_moments import MOMENTS, central_moment_discrepancy
from go_rl.costs.programs.learn.examples import ProgramExamples, ProgramInputs
from go_rl.costs.programs.learn.label_transform import KINDS, LabelKind, LabelTransform
from go_rl.costs.programs.learn.network import (
    PAPER,
    SMALL,
    ProgramBatch,
    ProgramNetwork,
    ProgramNetworkConfig,
    initial_program_params,
)
from go_rl.costs.programs.learn.prepared import InputScale, PreparedPrograms, prepare

LossName = Literal["mse", "mape", "mspe", "mse+mape"]
IN_FLIGHT = 16
"""Batches that are computed before the first result is asked for: on a loaded core each wait for
the thread that computes costs a turn of every other process."""
LEAST_LABEL = 1e-2
"""Labels below count as this where they divide."""


@dataclass(frozen=True)
class ProgramTrainConfig(TrainRun):
    """One training run of a program network."""

    network: ProgramNetworkConfig = field(default_factory=ProgramNetworkConfig)
    _: KW_ONLY
    updates: int = 2500
    learning_rate: float = 2e-3
    weight_decay: float = 1e-2
    batch: int = 128
    """Programs of an update, all of one leaf count."""
    labels: LabelKind = "box-cox"
    loss: LossName = "mse+mape"
    mape_weight: float = 1e-3
    """Weight λ of ``mse+mape``."""
    positional: bool = True
    """Whether the positional encoding is added to leaf vectors."""
    cmd_weight: float = 1.0
    """Weight α of the central moment discrepancy, in fine-tuning."""
    moments: int = MOMENTS
    optimizer: OptimizerName = "adamw"
    schedule: ScheduleName = "cosine"

    @property
    def what(self) -> str:
        return "program training"

    def check(self) -> None:
        if self.labels not in KINDS:
            self.refuse(f"no label transform {self.labels!r}{nearest(self.labels, KINDS)}")
        if self.loss not in get_args(LossName):
            self.refuse(f"no loss {self.loss!r}{nearest(self.loss, get_args(LossName))}")
        check_ranges(
            self, self.what, TrainingError, batch=COUNT, moments=COUNT, mape_weight=NOT_NEGATIVE,
            cmd_weight=NOT_NEGATIVE,
        )  # fmt: skip

    @property
    def rule(self) -> UpdateRule:
        """Rule of updates."""
        return UpdateRule(
            self.updates, self.learning_rate, self.weight_decay, self.optimizer, self.schedule
        )


NAMED_RUNS = {
    "small": ProgramTrainConfig(SMALL),
    "paper": ProgramTrainConfig(
        PAPER, learning_rate=1.68e-5, weight_decay=1.3e-3, batch=600, optimizer="adam",
        schedule="cyclic",
    ),
}  # fmt: skip
"""Runs by the name of the network: the one whose weights ship, and CDMPP's Table 6, which took an
hour or two on a V100."""


@dataclass(frozen=True, eq=False)
class TrainedProgramNetwork:
    """A network and its weights."""

    config: ProgramNetworkConfig
    params: Params

    def outputs(
        self, programs: PreparedPrograms
    ) -> tuple[Float32[np.ndarray, "P"], Float32[np.ndarray, "P E"]]:
        """Return [P] standardised labels and [P, E] latents."""
        count = len(programs.target)
        found = np.zeros(count, np.float32)
        latent = np.zeros((count, self.config.embedding), np.float32)
        shared = replace(self.config, leaf_counts=())
        under_way: deque[tuple[np.ndarray, Any]] = deque()
        batches = programs.batches()
        while True:
            for which, batch in islice(batches, IN_FLIGHT - len(under_way)):
                under_way.append((which, _apply(shared, self.params, batch)))
            if not under_way:
                return found, latent
            which, (label, z) = under_way.popleft()
            found[which] = np.asarray(label)[: len(which)]
            latent[which] = np.asarray(z)[: len(which)]


def train_programs_network(
    examples: ProgramExamples,
    config: ProgramTrainConfig,
    scale: InputScale,
    transform: LabelTransform,
    report: MemberReport | None = None,
    start: Params | None = None,
    unlabelled: ProgramInputs | None = None,
) -> TrainedProgramNetwork:
    """Return a network that learned from examples.

    Args:
        examples: with times.
        config: of the run; its network has layers for all leaf counts of the examples.
        scale: of the inputs.
        transform: of the labels.
        report: see `go_rl.costs.learning.training.train`.
        start: parameters to begin with, fine-tuning; None: random ones.
        unlabelled: programs of another domain, whose latents are to be distributed alike; None:
            there are none.

    Raises:
        TrainingError: a program has a leaf count without layers, or the loss became NaN.
    """
    counts = config.network.leaf_counts
    programs = prepare(examples.inputs, scale, counts, config.positional)
    labels = (transform.labels(examples.seconds) - transform.mean) / transform.deviation
    others = None if unlabelled is None else prepare(unlabelled, scale, counts, config.positional)
    source = _RandomPrograms(programs, labels, config, transform, others)
    params = start or initial_program_params(config.network, jax.random.key(config.seed))
    rng = np.random.default_rng(config.seed)
    params = train(params, source, config, rng, report, config.rule)
    return TrainedProgramNetwork(config.network, params)


@partial(jax.jit, static_argnums=0)
def _apply(config: ProgramNetworkConfig, params: Params, batch: ProgramBatch) -> Any:
    return ProgramNetwork(config).apply(params, batch)


class LabelledPrograms(NamedTuple):
    """A batch of an update."""

    programs: ProgramBatch
    labels: Any
    """[B] standardised labels."""
    others: ProgramBatch | None
    """Unlabelled ones of another domain."""
    weights: Any
    """[4] of squared errors, percentage errors, squares of these, and the discrepancy."""
    label_scale: Any
    """[2] mean and deviation that standardised the labels."""
    key: Any
    """Random key of dropped numbers."""


@dataclass(frozen=True)
class ProgramLoss:
    """The loss of labels, and the discrepancy where a batch has unlabelled programs."""

    network: ProgramNetworkConfig
    moments: int

    def __call__(self, params: Params, batch: LabelledPrograms) -> Float[Array, ""]:
        """Return the loss of a batch (CDMPP, equations 3 and 7)."""
        drops = self.network.dropout > 0
        network, keys = ProgramNetwork(self.network), {"dropout": batch.key}
        found: Any = network.apply(params, batch.programs, drops, rngs=keys)
        out, latent = found
        loss = _label_loss(out, batch)
        if batch.others is None:
            return loss
        others: Any = network.apply(params, batch.others, drops, rngs=keys)
        apart = central_moment_discrepancy(latent, others[1], self.moments)
        return loss + batch.weights[3] * apart


def _label_loss(out: Float[Array, "B"], batch: LabelledPrograms) -> Float[Array, ""]:
    mean, deviation = batch.label_scale
    error = out - batch.labels
    truth = jnp.maximum(mean + deviation * batch.labels, LEAST_LABEL)
    share = deviation * jnp.abs(error) / truth
    terms = jnp.stack([jnp.square(error), share, jnp.square(share)]).mean(axis=1)
    return (batch.weights[:3] * terms).sum()


def _weights(config: ProgramTrainConfig) -> Float32[np.ndarray, "4"]:
    """Weights of a loss by its name."""
    terms = {
        "mse": (1.0, 0.0, 0.0), "mape": (0.0, 1.0, 0.0), "mspe": (0.0, 0.0, 1.0),
        "mse+mape": (1.0, config.mape_weight, 0.0),
    }[config.loss]  # fmt: skip
    return np.array([*terms, config.cmd_weight], np.float32)


class _RandomPrograms:
    """Draws programs of one leaf count, a count by its share of all programs; and as many
    unlabelled ones of the same count, where there are some."""

    def __init__(
        self,
        programs: PreparedPrograms,
        labels: Float64[np.ndarray, "P"],
        config: ProgramTrainConfig,
        transform: LabelTransform,
        others: PreparedPrograms | None,
    ) -> None:
        self._programs, self._others = programs, others
        self._labels, self._size = labels.astype(np.float32), config.batch
        counts = {
            n: members
            for n, members in programs.by_count.items()
            if others is None or n in others.by_count
        }
        if not counts:
            raise TrainingError("fine-tuning: no unlabelled program has as many leaves as another")
        self._counts = list(counts.items())
        share = np.array([len(members) for members in counts.values()], np.float64)
        self._chance = share / share.sum()
        self._weights = _weights(config)
        self._label_scale = np.array([transform.mean, transform.deviation], np.float32)
        self.loss = ProgramLoss(replace(config.network, leaf_counts=()), config.moments)

    def draw(self, rng: np.random.Generator) -> Any:
        count, members = self._counts[int(rng.choice(len(self._counts), p=self._chance))]
        which = self._some(members, rng)
        key = jax.random.key(int(rng.integers(2**31)))
        others = None
        if self._others is not None:
            others = self._others.batch(self._some(self._others.by_count[count], rng), count)
        programs = self._programs.batch(which, count)
        return LabelledPrograms(
            programs, self._labels[which], others, self._weights, self._label_scale, key
        )

    def _some(self, members: Int64[np.ndarray, "J"], rng: np.random.Generator) -> np.ndarray:
        """Sample of as many as a batch holds; of fewer, some several times."""
        return rng.choice(members, self._size, replace=len(members) < self._size)
