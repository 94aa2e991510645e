"""The training loop of networks that learn seconds or ranks. Batches have few shapes, so that
compilations are few."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple, NoReturn, Protocol, TypeVar, runtime_checkable

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array

from go_rl.core import TrainingError
from go_rl.core.config_checks import COUNT, POSITIVE, check_ranges

Params = Any
Trained = TypeVar("Trained")
MemberReport = Callable[[int, float], None]
"""Receives the update and the loss."""
Report = Callable[[int, int, float], None]
"""Receives the network, the update and the loss."""
MEMBERS = 3
"""Networks of an ensemble; they differ by their seed."""
REPORTED = 100
"""Updates from one report to the next; the last one is reported, too."""
OptimizerName = Literal["adamw", "adam", "sgd"]
ScheduleName = Literal["cosine", "cyclic", "constant"]
NEVER_CROSSED = 1e30
"""Width of a bin that holds nothing."""


@dataclass(frozen=True, kw_only=True)
class TrainRun(ABC):
    """Abstract: one training run; the same configuration and machine give the same weights."""

    updates: int
    """Updates of the weights."""
    learning_rate: float
    """The largest (`UpdateRule`)."""
    weight_decay: float = 1e-2
    seed: int = 0

    def __post_init__(self) -> None:
        check_ranges(self, self.what, TrainingError, updates=COUNT, learning_rate=POSITIVE)
        self.check()

    @property
    @abstractmethod
    def what(self) -> str:
        """The run in messages, such as ``rank training``."""

    @abstractmethod
    def check(self) -> None:
        """Raise a `TrainingError` for fields of its own that no run can have."""

    def refuse(self, why: str) -> NoReturn:
        """Raise a `TrainingError` of this run."""
        raise TrainingError(f"{self.what}: {why}")


@runtime_checkable
class BatchSource(Protocol):
    """Random batches and the loss of each."""

    @property
    def loss(self) -> Callable[[Params, Any], Array]:
        """Loss of parameters on a batch: hashable, for it is compiled once."""
        ...

    def draw(self, rng: np.random.Generator) -> Any:
        """Return a random batch."""
        ...


@partial(jax.jit, static_argnums=0)
def initial_params(network: nn.Module, key: Array, *inputs: Any) -> Params:
    """Return random parameters of a network that reads such inputs."""
    return network.init(key, *inputs)


def train(
    params: Params,
    source: BatchSource,
    config: TrainRun,
    rng: np.random.Generator,
    report: MemberReport | None,
    rule: UpdateRule | None = None,
) -> Params:
    """Return parameters after all updates.

    Args:
        params: at the beginning; of these ``params["params"]`` are learned.
        source: of a batch for every update.
        config: of the run.
        rng: draws the batches.
        report: receives every hundredth update, and the last, and its loss.
        rule: of updates; None: AdamW, a warm-up and a cosine.

    Raises:
        TrainingError: the loss became NaN.
    """
    rule = rule or UpdateRule(config.updates, config.learning_rate, config.weight_decay)
    state = rule.transformation().init(params["params"])
    for update in range(1, config.updates + 1):
        value, slope = _gradient(source.loss, params, source.draw(rng))
        weights, state = _change(rule, params["params"], state, slope)
        params = {**params, "params": weights}
        if update % REPORTED and update != config.updates:
            continue
        loss = float(value)
        if not np.isfinite(loss):
            config.refuse(f"the loss became {loss}; lower learning_rate ({config.learning_rate})")
        if report is not None:
            report(update, loss)
    return params


class UpdateRule(NamedTuple):
    """Update rule: turns clipped gradients into updates."""

    updates: int
    learning_rate: float
    """The largest."""
    weight_decay: float
    optimizer: OptimizerName = "adamw"
    """``sgd`` has a momentum of 0.9; ``adam`` adds the decay to the gradient, as PyTorch's does."""
    schedule: ScheduleName = "cosine"
    """``cosine``: warm-up over a twentieth of the updates, then a cosine; ``cyclic``: five
    triangles between a tenth of the learning rate and all of it; ``constant``."""

    def transformation(self) -> optax.GradientTransformation:
        """Return the rule as optax has it."""
        rate = self._rate()
        decay = optax.add_decayed_weights(self.weight_decay)
        if self.optimizer == "sgd":
            rule = optax.chain(decay, optax.sgd(rate, momentum=0.9))
        elif self.optimizer == "adam":
            rule = optax.chain(decay, optax.adam(rate))
        else:
            rule = optax.adamw(rate, weight_decay=self.weight_decay)
        return optax.chain(optax.clip_by_global_norm(1.0), rule)

    def _rate(self) -> optax.Schedule:
        if self.schedule == "constant":
            return optax.constant_schedule(self.learning_rate)
        if self.schedule == "cyclic":
            return partial(_triangles, self.learning_rate, max(self.updates // 5, 1))
        warm_up = max(self.updates // 20, 1)
        end = max(self.updates, warm_up + 1)
        return optax.warmup_cosine_decay_schedule(0.0, self.learning_rate, warm_up, end)


def _triangles(largest: float, period: int, count: Any) -> Any:
    """CyclicLR of the paper's code: the rate after this many updates."""
    place = (count % period) / period
    return largest * (0.1 + 0.9 * (1.0 - jnp.abs(2.0 * place - 1.0)))


@partial(jax.jit, static_argnums=0)
def _gradient(loss: Callable[[Params, Any], Array], params: Params, batch: Any) -> Any:
    """The loss and its gradient."""
    return jax.value_and_grad(lambda weights: loss({**params, "params": weights}, batch))(
        params["params"]
    )


@partial(jax.jit, static_argnums=0)
def _change(rule: UpdateRule, weights: Any, state: Any, gradient: Any) -> tuple[Any, Any]:
    """New weights and state of the rule."""
    step, after = rule.transformation().update(gradient, state, weights)
    return optax.apply_updates(weights, step), after


def train_members(
    train_one: Callable[[int, MemberReport], Trained],
    seed: int,
    members: int,
    report: Report | None,
) -> tuple[Trained, ...]:
    """Return the networks of an ensemble, which differ by their seed.

    Args:
        train_one: trains one from its seed; reports as `train` does.
        seed: of the first; those that follow take the next.
        members: networks.
        report: receives the reports of all of them.
    """

    def of(member: int) -> MemberReport:
        return lambda update, loss: None if report is None else report(member, update, loss)

    return tuple(train_one(seed + i, of(i)) for i in range(members))


def scale_of(rows: np.ndarray) -> dict[str, Array]:
    """Return what `go_rl.costs.kernels.network.Standardised` holds for these rows."""
    deviation = rows.std(axis=0)
    return {
        "mean": jnp.asarray(rows.mean(axis=0)),
        "deviation": jnp.asarray(np.where(deviation > 1e-3, deviation, 1.0)),
    }


def bins_of(rows: np.ndarray, bins: int) -> dict[str, Array]:
    """Return what `go_rl.costs.kernels.network.PiecewiseLinear` holds for these rows: bins
    between their quantiles; in bins without width everything has the place 0."""
    edges = np.quantile(rows, np.linspace(0.0, 1.0, bins + 1), axis=0)
    width = np.diff(edges, axis=0)
    return {
        "low": jnp.asarray(edges[:-1], jnp.float32),
        "width": jnp.asarray(np.where(width > 1e-4, width, NEVER_CROSSED), jnp.float32),
    }
