"""`Descent`: AdamW along mean gradients, at a rate that falls to a tenth along a cosine."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import optax

from go_rl.policy.network import Params

UNDECAYED = "prototypes"
"""Name of parameters that do not decay, though they are a matrix."""


@dataclass(frozen=True)
class Descent:
    """Optimiser and its learning rate; equal ones share a compiled update."""

    learning_rate: float
    """Initial learning rate."""
    updates: int
    """Updates over which the rate falls."""
    weight_decay: float

    @property
    def rule(self) -> optax.GradientTransformation:
        """Gradients clipped to norm 1, then AdamW."""
        rate = optax.cosine_decay_schedule(self.learning_rate, max(self.updates, 1), alpha=0.1)
        adam = optax.adamw(rate, weight_decay=self.weight_decay, mask=_matrices)
        return optax.chain(optax.clip_by_global_norm(1.0), adam)


@partial(jax.jit, static_argnums=0)
def descend(
    descent: Descent, params: Params, state: Any, gradients: list[Params]
) -> tuple[Params, Any]:
    """Return parameters and state after one step along the mean gradient."""
    mean = jax.tree.map(lambda *each: sum(each) / len(each), *gradients)
    change, state = descent.rule.update(mean, state, params)
    return optax.apply_updates(params, change), state


def _matrices(params: Params) -> Any:
    """Parameters that decay: matrices, but for `UNDECAYED`; no weights of one dimension."""
    return jax.tree_util.tree_map_with_path(
        lambda path, leaf: leaf.ndim > 1 and path[-1].key != UNDECAYED, params
    )
