"""Dropout (Srivastava et al. 2014) of networks in training, as few nodes of a graph."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

LEVELS = 256
"""Values of the random bytes that are compared: the rate is rounded to so many."""


def dropout(x: Any, rate: float) -> Any:
    """Return ``x`` with a share of its elements zero and the others divided by what is kept; 0: as
    it is, without a node.

    Every call draws the same numbers: the graph is priced and planned, no network learns from it.
    """
    if rate == 0:
        return x
    drawn = jax.random.bits(jax.random.key(0), x.shape, jnp.uint8)
    kept = drawn >= round(rate * LEVELS)
    return jnp.where(kept, x / (1 - rate), 0.0)
