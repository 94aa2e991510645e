"""`Form`: what the learning of prototypes must know of a policy's weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float32

from go_rl.objectives.ring import order_weights
from go_rl.objectives.ring.reference_orders import REFERENCE_ORDERS
from go_rl.policy.dispatch import features


class Form(NamedTuple):
    """One kind of weights."""

    width: int
    """Number of weights, ``W``."""
    untrained: Callable[[int, int], Float32[np.ndarray, "B W"]]
    """[count, W] weights that a search starts from, by count and seed."""
    given: Float32[np.ndarray, "G W"]
    """[G, W] weights that are candidates in any case: what compilers have."""


def untrained_heads(count: int, seed: int) -> Float32[np.ndarray, "B W"]:
    """Return untrained weights of a dispatcher's heads: a list scheduler, one that keeps the
    placements made beforehand, by turns, then random ones around them."""
    drawn = np.random.default_rng(seed).standard_normal((count, features.WIDTH)).astype(np.float32)
    known = features.list_schedulers()[:count]
    drawn[: len(known)] = known
    return drawn


FORMS = {
    "dispatch": Form(features.WIDTH, untrained_heads, features.list_schedulers()),
    "orders": Form(
        order_weights.WIDTH,
        order_weights.first_weights,
        order_weights.first_weights(len(REFERENCE_ORDERS), 0),
    ),
}
"""By the name of the policy."""
