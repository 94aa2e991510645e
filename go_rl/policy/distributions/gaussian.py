"""Gaussian decisions."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float


def gaussian(
    values: Float[Array, "*X"], mean: Float[Array, "*#X"], log_sigma: Float[Array, "*#X"]
) -> Float[Array, "*X"]:
    """Return log N(values; mean, sigma^2), elementwise, without the constant."""
    return -0.5 * jnp.square((values - mean) * jnp.exp(-log_sigma)) - log_sigma
