"""`Memory`: the best decisions so far, learned again with each batch (Oh et al. 2018,
self-imitation learning)."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float64

from go_rl.train.elites import Elites, best_of
from go_rl.train.step_ppo import StepBatch

WORTH = 1.0
"""Advantage of a remembered decision: as if its plan were one standard deviation above the rest."""


class Memory:
    """What one search on one graph remembers."""

    def __init__(self, size: int) -> None:
        """``size``: decisions held; 0: none."""
        self.size = size
        self._held: Elites | None = None

    def lessons(self, batch: StepBatch, reward: Float64[np.ndarray, "B"]) -> list[StepBatch]:
        """Return the batch and, from the second on, the best decisions of all batches.

        Args:
            batch: newly drawn.
            reward: [B] what its plans earned.
        """
        if not self.size:
            return [batch]
        first = self._held is None
        drawn = Elites(jax.device_get(batch.actions), reward)
        self._held = held = best_of(self._held, drawn, self.size)
        if first:
            return [batch]
        worth = jnp.full(len(held.reward), WORTH, jnp.float32)
        return [batch, batch._replace(actions=held.actions, advantage=worth)]
