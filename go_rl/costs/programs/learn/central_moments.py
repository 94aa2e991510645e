"""Central moment discrepancy of two samples of bounded latents (Zellinger et al. 2019; CDMPP,
equation 6)."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float

MOMENTS = 5
WIDTH = 2.0
"""Width b - a of latents bounded by tanh."""
TINY = 1e-12
"""Addend under the root of a norm, whose slope at 0 is infinite."""


def central_moment_discrepancy(
    source: Float[Array, "A E"],
    target: Float[Array, "B E"],
    moments: int = MOMENTS,
) -> Float[Array, ""]:
    """Return |E x - E y| / `WIDTH` + sum over j = 2 … moments of |C_j(x) - C_j(y)| / `WIDTH`^j,
    Euclidean norms, C_j(x) = E (x - E x)^j element by element.

    Args:
        source: [A, E] latents of one domain.
        target: [B, E] of the other.
        moments: the highest, at least 1.
    """
    mean, other = source.mean(axis=0), target.mean(axis=0)
    total = _norm(mean - other) / WIDTH
    centred, centred_other = source - mean, target - other
    for j in range(2, moments + 1):
        apart = (centred**j).mean(axis=0) - (centred_other**j).mean(axis=0)
        total = total + _norm(apart) / WIDTH**j
    return total


def _norm(x: Float[Array, "E"]) -> Float[Array, ""]:
    return jnp.sqrt(jnp.square(x).sum() + TINY)
