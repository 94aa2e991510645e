"""`Memory`: the best decisions so far, learned again with each batch (Oh et al. 2018,
self-imitation learning)."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float64

from go_rl.policy.agent import Actions
from go_rl.policy.learn.ppo import Batch, SampleGroup

WORTH = 1.0
"""Advantage of a remembered decision: as if its plan were one standard deviation above the rest."""


class Elites(NamedTuple):
    """The best ``K`` decisions so far, the best first."""

    actions: Actions
    """[K, ...] of every decision."""
    reward: Float64[np.ndarray, "K"]
    """[K] what their plans earned."""


class Memory:
    """Memory of one search on one graph."""

    def __init__(self, size: int) -> None:
        """``size``: decisions held; 0: none."""
        self.size = size
        self._held: Elites | None = None

    def lessons(self, batch: Batch, reward: Float64[np.ndarray, "B"]) -> list[Batch]:
        """Return the batch and, from the second on, the best decisions of all batches.

        Args:
            batch: newly drawn.
            reward: [B] what its plans earned.
        """
        if not self.size:
            return [batch]
        first = self._held is None
        ((name, group),) = batch.groups.items()
        drawn = Elites(jax.device_get(group.actions), reward)
        self._held = held = best_of(self._held, drawn, self.size)
        if first:
            return [batch]
        worth = jnp.full(len(held.reward), WORTH, jnp.float32)
        return [batch, batch._replace(groups={name: SampleGroup(held.actions, worth)})]


def best_of(before: Elites | None, drawn: Elites, kept: int) -> Elites:
    """Return the best of what was known and what was drawn; the earlier of equals first."""
    if before is not None:
        both = (before.actions, drawn.actions)
        actions = jax.tree.map(lambda a, b: np.concatenate([a, b]), *both)
        drawn = Elites(actions, np.concatenate([before.reward, drawn.reward]))
    order = np.argsort(-drawn.reward, kind="stable")[:kept]
    return Elites(jax.tree.map(lambda x: np.asarray(x)[order], drawn.actions), drawn.reward[order])
