"""Training a kernel network on measured runtimes: absolute ones, or which of two is faster.

Absolute: Huber's loss of the log of the seconds; the second output learns the log of the deviation
from the residuals, of which the mean knows nothing (a heteroscedastic head). Relative: the pairwise
rank loss of the talk, with the hinge or the logistic function, within groups.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Float64, Int64

from go_rl.core import TrainingError
from go_rl.predictors.kernels.batch import LENGTHS, KernelBatch, all_batches, batch_of, lengths
from go_rl.predictors.kernels.features import KernelFeatures
from go_rl.predictors.kernels.network import KernelNetwork, KernelNetworkConfig

LEAST_DEVIATION, LARGEST_DEVIATION = -5.0, 2.0
"""Bounds of the log of the deviation that is predicted."""
Params = Any


@dataclass(frozen=True)
class KernelTrainConfig:
    """One training run; the same configuration and machine give the same weights."""

    network: KernelNetworkConfig = field(default_factory=KernelNetworkConfig)
    steps: int = 5000
    """Updates."""
    nodes: int = 2048
    """Nodes of an update, padding counted; its kernels are all of one length bucket."""
    learning_rate: float = 5e-3
    """AdamW's largest; warm-up over a twentieth of the steps, then a cosine."""
    weight_decay: float = 1e-2
    forget: float = 0.02
    """Share of the opcodes that an update replaces by the unknown one, so that it is learned."""
    seed: int = 0

    def __post_init__(self) -> None:
        if self.steps < 1 or self.nodes < LENGTHS[-1]:
            raise TrainingError(
                f"kernel training: steps must be >= 1 and nodes >= {LENGTHS[-1]}, not "
                f"{self.steps} and {self.nodes}"
            )
        check_learning("kernel training", self.learning_rate, self.forget)


def check_learning(what: str, learning_rate: float, forget: float) -> None:
    """Raise a `TrainingError`, which begins with ``what``, for values that no run can have."""
    if not learning_rate > 0:
        raise TrainingError(f"{what}: learning_rate must be above 0, not {learning_rate}")
    if not 0 <= forget < 1:
        raise TrainingError(f"{what}: forget must lie in [0, 1), not {forget}")


@dataclass(frozen=True, eq=False)
class TrainedNetwork:
    """A network and its weights."""

    config: KernelNetworkConfig
    params: Params

    def predict(self, features: KernelFeatures) -> Float64[np.ndarray, "K O"]:
        """Return [K, outputs] for all kernels."""
        found = np.zeros((features.num_kernels, self.config.outputs))
        for which, batch in all_batches(features):
            found[which] = np.asarray(_apply(self.config, self.params, batch))[: len(which)]
        return found


@partial(jax.jit, static_argnums=0)
def _apply(config: KernelNetworkConfig, params: Params, batch: KernelBatch) -> Array:
    return KernelNetwork(config).apply(params, batch)  # pyright: ignore[reportReturnType]


def train_absolute(
    features: KernelFeatures,
    seconds: Float64[np.ndarray, "K"],
    config: KernelTrainConfig,
    report: Callable[[int, float], None] | None = None,
) -> TrainedNetwork:
    """Return a network that predicts the log of the seconds and the log of its deviation.

    Args:
        features: of the kernels.
        seconds: [K] measured, each > 0.
        config: of the run; its network has two outputs.
        report: is told the update and the loss, every hundredth time.

    Raises:
        TrainingError: the loss became NaN.
    """
    target = np.log(seconds)
    params = _initial(features, config)
    bias = params["params"]["out"]["bias"]
    params["params"]["out"]["bias"] = bias.at[0].set(float(target.mean()))
    return _trained(features, params, config, target[:, None], absolute_loss, report)


Loss = Callable[[Float[Array, "B O"], Float[Array, "B T"], Float[Array, "B"]], Float[Array, ""]]
"""From what is predicted, the targets, and which rows are real."""


HUBER = 0.1
"""Errors of the logarithm beyond this count linearly, for some kernels were badly measured."""
NEVER_CROSSED = 1e30
"""Width of a bin that holds nothing."""
LEAST_WEIGHT = 1e-6
"""Of all pairs together: there may be none."""


def absolute_loss(
    predicted: Float[Array, "B 2"], target: Float[Array, "B 1"], real: Float[Array, "B"]
) -> Float[Array, ""]:
    """Return Huber's loss, in units of `HUBER`, and the likelihood of the deviation given the
    residual."""
    error = predicted[:, 0] - target[:, 0]
    spread = jnp.clip(predicted[:, 1], LEAST_DEVIATION, LARGEST_DEVIATION)
    residual = jax.lax.stop_gradient(error)
    doubt = 0.5 * jnp.square(residual) * jnp.exp(-2.0 * spread) + spread
    return ((optax.huber_loss(error, delta=HUBER) / HUBER + 0.1 * doubt) * real).sum() / real.sum()


def rank_loss(
    function: Literal["hinge", "logistic"],
    predicted: Float[Array, "B 1"],
    target: Float[Array, "B 2"],
    real: Float[Array, "B"],
    most: float | None = None,
) -> Float[Array, ""]:
    """Return the talk's pairwise rank loss: phi(y'_i - y'_j) over all pairs with y_i > y_j.

    Args:
        function: phi: max(1 - z, 0), or log(1 + exp(-z)).
        predicted: [B, 1] scores, larger for slower.
        target: [B, 2] seconds, and the number of the group; only pairs of one group count.
        real: [B] rows that count.
        most: pairs count by how far apart they are in ``target``, up to this; None: all alike.
    """
    score, seconds, group = predicted[:, 0], target[:, 0], target[:, 1]
    z = score[:, None] - score[None, :]
    phi = jax.nn.relu(1.0 - z) if function == "hinge" else jax.nn.softplus(-z)
    pair = (seconds[:, None] > seconds[None, :]) & (group[:, None] == group[None, :])
    weight = pair * real[:, None] * real[None, :]
    if most is not None:
        weight = weight * jnp.minimum(seconds[:, None] - seconds[None, :], most)
    return (phi * weight).sum() / jnp.maximum(weight.sum(), LEAST_WEIGHT)


def _initial(features: KernelFeatures, config: KernelTrainConfig) -> Params:
    which = np.arange(min(features.num_kernels, 2))
    batch = jax.tree.map(jnp.asarray, batch_of(features, which, 2, LENGTHS[-1]))
    params = jax.jit(KernelNetwork(config.network).init)(jax.random.key(config.seed), batch)
    params = jax.tree.map(jnp.asarray, params)
    scale = {
        "node_scale": scale_of(features.nodes),
        "whole_scale": scale_of(features.whole),
    }
    return {**params, "scale": {k: scale[k] for k in params["scale"]}}


def scale_of(rows: np.ndarray) -> dict[str, Array]:
    """Return what `go_rl.predictors.kernels.network.Standardised` holds for these rows."""
    deviation = rows.std(axis=0)
    return {
        "mean": jnp.asarray(rows.mean(axis=0)),
        "deviation": jnp.asarray(np.where(deviation > 1e-3, deviation, 1.0)),
    }


def bins_of(rows: np.ndarray, bins: int) -> dict[str, Array]:
    """Return what `go_rl.predictors.kernels.network.PiecewiseLinear` holds for these rows: bins
    between their quantiles; in bins without width everything has the place 0."""
    edges = np.quantile(rows, np.linspace(0.0, 1.0, bins + 1), axis=0)
    width = np.diff(edges, axis=0)
    return {
        "low": jnp.asarray(edges[:-1], jnp.float32),
        "width": jnp.asarray(np.where(width > 1e-4, width, NEVER_CROSSED), jnp.float32),
    }


def _trained(
    features: KernelFeatures,
    params: Params,
    config: KernelTrainConfig,
    target: Float64[np.ndarray, "K T"],
    loss: Loss,
    report: Callable[[int, float], None] | None,
) -> TrainedNetwork:
    rule, step = _step(config, loss)
    state, rng = rule.init(params["params"]), np.random.default_rng(config.seed)
    groups = _length_groups(features)
    chance = np.array([length * len(group) for length, group in groups], np.float64)
    chance /= chance.sum()
    value: Any = 0.0
    for i in range(config.steps):
        length, members = groups[int(rng.choice(len(groups), p=chance))]
        size = config.nodes // length
        which = rng.choice(members, min(size, len(members)), replace=False)
        batch = forgetful(batch_of(features, which, size, length), config.forget, rng)
        wanted = np.zeros((size, target.shape[1]), np.float32)
        wanted[: len(which)] = target[which]
        params, state, value = step(params, state, batch, wanted)
        if i % 100 == 99 and report is not None:
            report(i + 1, float(value))
    if not np.isfinite(float(value)):
        raise TrainingError(
            f"kernel training: the loss became {float(value)}; lower learning_rate "
            f"({config.learning_rate})"
        )
    return TrainedNetwork(config.network, params)


def _length_groups(features: KernelFeatures) -> list[tuple[int, Int64[np.ndarray, "J"]]]:
    bucket = lengths(features)
    found = [(length, np.flatnonzero(bucket == length)) for length in LENGTHS]
    return [(length, members) for length, members in found if len(members)]


def forgetful(batch: KernelBatch, share: float, rng: np.random.Generator) -> KernelBatch:
    """Return the batch with a share of its opcodes unknown."""
    lost = rng.random(batch.opcode.shape) < share
    return batch._replace(opcode=np.where(lost, 0, batch.opcode).astype(np.int32))


def learning_rule(
    steps: int, learning_rate: float, weight_decay: float
) -> optax.GradientTransformation:
    """Return AdamW with a warm-up over a twentieth of the steps, then a cosine, on clipped
    gradients."""
    warm_up = max(steps // 20, 1)
    end = max(steps, warm_up + 1)
    rate = optax.warmup_cosine_decay_schedule(0.0, learning_rate, warm_up, end)
    return optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(rate, weight_decay=weight_decay))


def _step(config: KernelTrainConfig, loss: Loss) -> tuple[Any, Any]:
    rule = learning_rule(config.steps, config.learning_rate, config.weight_decay)
    network = KernelNetwork(config.network)

    @jax.jit
    def step(params: Params, state: Any, batch: KernelBatch, target: Array) -> tuple[Any, Any, Any]:
        def cost(weights: Any) -> Array:
            predicted: Any = network.apply({**params, "params": weights}, batch)
            return loss(predicted, target, jnp.sign(batch.real.sum(axis=1)))

        value, gradient = jax.value_and_grad(cost)(params["params"])
        change, after = rule.update(gradient, state, params["params"])
        weights = optax.apply_updates(params["params"], change)
        return {**params, "params": weights}, after, value

    return rule, step
