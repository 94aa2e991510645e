"""Categorical decisions of units: how they are drawn, and their log-probabilities.

Dimension letters: ``B`` samples, ``T`` iterations, ``U`` units, ``K`` choices of a unit.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

NEVER = -1e9
"""Logit of what cannot be chosen, such as a chip that does not exist."""


class ChoiceLogProbs(NamedTuple):
    """Log-probabilities of what was chosen."""

    chosen: Float[Array, "B T U"]
    """[B, T, U] renormalised over what was possible."""
    free: Float[Array, "*#B U"]
    """1 where a unit had several choices; where it had one, others decided."""

    def parts(self, real: Float[Array, "U"]) -> tuple[tuple[Array, Array], ...]:
        """Return the log-probabilities whose ratios are clipped apart, each with its weights."""
        return ((self.chosen, jnp.broadcast_to(real * self.free, self.chosen.shape)),)


def draw_choices(
    log_probs: Float[Array, "#B U K"], noise: Float[Array, "B"], key: Array
) -> Int[Array, "B U"]:
    """Draw a choice for each unit; ``noise`` is a temperature: 1 draws, 0 takes the likeliest."""
    shape = (len(noise), *log_probs.shape[1:])
    gumbel = noise[:, None, None] * jax.random.gumbel(key, shape)
    return jnp.argmax(log_probs + gumbel, axis=-1).astype(jnp.int32)


def log_prob_of(
    log_probs: Float[Array, "*#X U K"], chosen: Int[Array, "*X U"]
) -> Float[Array, "*X U"]:
    """Return the log-probabilities of given choices."""
    every = jnp.broadcast_to(log_probs, (*chosen.shape, log_probs.shape[-1]))
    return jnp.take_along_axis(every, chosen[..., None], axis=-1)[..., 0]


def entropies(log_probs: Float[Array, "*X U K"]) -> Float[Array, "*X U"]:
    """Return the entropy of each distribution."""
    return -(jnp.exp(log_probs) * log_probs).sum(axis=-1)
