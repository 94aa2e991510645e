"""Losses of networks that learn seconds or ranks.

Absolute: Huber's loss of the log of the seconds; the second output learns the log of the deviation
from the residuals, of which the mean knows nothing (a heteroscedastic head). Relative: the pairwise
rank loss of "A Learnt Performance Model for TPUs", with the hinge or the logistic function, within
groups; or, for comparison, the squared error of the log of the seconds.
"""

from __future__ import annotations

from functools import partial
from typing import Literal

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float

LEAST_DEVIATION, LARGEST_DEVIATION = -5.0, 2.0
"""Bounds of the log of the deviation that is predicted."""
HUBER = 0.1
"""Errors of the logarithm beyond this count linearly, for some kernels were badly measured."""
LEAST_WEIGHT = 1e-6
"""Least weight of all pairs together: there may be none."""
RankLoss = Literal["hinge", "logistic", "mse"]


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
    """Return the paper's pairwise rank loss: phi(y'_i - y'_j) over all pairs with y_i > y_j.

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
        most: see `rank_loss`.
    """
    if loss == "mse":
        return (jnp.square(score - log_seconds) * real).sum() / jnp.maximum(real.sum(), 1.0)
    target = jnp.stack([log_seconds, jnp.zeros_like(log_seconds)], axis=-1)
    of_group = jax.vmap(partial(rank_loss, loss, most=most))(score[..., None], target, real)
    counted = jnp.sign(real.sum(axis=1))
    return (of_group * counted).sum() / jnp.maximum(counted.sum(), 1.0)
