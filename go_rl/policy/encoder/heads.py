"""Recurrent decision heads (GO, section 3.2): each sees what attention makes of the head before.

H_t = LN(concat(A_{t-1}, H_{t-1})),  A_t = FC(MultiHeadAttn(H_t)).
"""

from __future__ import annotations

import flax.linen as nn
import jax.numpy as jnp
from jaxtyping import Array, Float

from go_rl.policy.config import PolicyConfig
from go_rl.policy.encoder.segmented_attention import SegmentedAttention


class DecisionHeads(nn.Module):
    """Embeddings for every decision, from those of the encoder."""

    config: PolicyConfig
    heads: tuple[str, ...]
    """Names of the heads, in the order of the recurrence."""

    @nn.compact
    def __call__(
        self, h: Float[Array, "U D"], real: Float[Array, "U"]
    ) -> dict[str, Float[Array, "U D"]]:
        """Return {head: [U, D]}."""
        config = self.config
        attended, state, found = h, h, {}
        for name in self.heads:
            state = nn.LayerNorm(name=f"{name}_norm")(jnp.concatenate([attended, state], axis=-1))
            state = nn.Dense(config.hidden, name=f"{name}_state")(state)
            mixed = state
            if config.attention_layers:
                attention = SegmentedAttention(
                    config.heads, config.segment, config.recurrence, name=f"{name}_attention"
                )
                mixed = attention(state, real)
            attended = nn.Dense(config.hidden, name=f"{name}_out")(mixed)
            found[name] = nn.relu(state + attended)
        return found
