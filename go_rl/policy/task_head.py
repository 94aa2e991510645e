"""Recurrent task heads (GO, section 3.2): each task sees what attention makes of the task before.

H_t = LN(concat(A_{t-1}, H_{t-1})),  A_t = FC(MultiHeadAttn(H_t)).
"""

from __future__ import annotations

import flax.linen as nn
import jax.numpy as jnp
from jaxtyping import Array, Float

from go_rl.core import SearchError
from go_rl.policy.config import PolicyConfig
from go_rl.policy.segmented_attention import SegmentedAttention

TASKS = ("order", "placement")
"""Tasks in the order of the recurrence."""


def check_task(task: str) -> None:
    """Raise `SearchError` unless the policy has the task."""
    if task not in TASKS:
        raise SearchError(f"task must be one of {', '.join(TASKS)}, not {task!r}")


class TaskHeads(nn.Module):
    """Embeddings for every task, from those of the encoder."""

    config: PolicyConfig
    tasks: tuple[str, ...] = TASKS
    """In the order of the recurrence."""

    @nn.compact
    def __call__(
        self, h: Float[Array, "U D"], real: Float[Array, "U"]
    ) -> dict[str, Float[Array, "U D"]]:
        """Return {task: [U, D]}."""
        config = self.config
        attended, state, found = h, h, {}
        for task in self.tasks:
            state = nn.LayerNorm(name=f"{task}_norm")(jnp.concatenate([attended, state], axis=-1))
            state = nn.Dense(config.hidden, name=f"{task}_state")(state)
            mixed = state
            if config.attention_layers:
                attention = SegmentedAttention(
                    config.heads, config.segment, config.recurrence, name=f"{task}_attention"
                )
                mixed = attention(state, real)
            attended = nn.Dense(config.hidden, name=f"{task}_out")(mixed)
            found[task] = nn.relu(state + attended)
        return found
