"""`HardwarePolicy`: a policy whose summary of a graph sees the hardware, too."""

from __future__ import annotations

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import jraph
from jaxtyping import Array, Float

from go_rl.policy.encoder.graph_arrays import hardware_features
from go_rl.policy.network import Policy


class HardwarePolicy(Policy):
    """Abstract: its summary of a graph sees the hardware, and its decoders lie in ``decoders``."""

    def setup_summary(self) -> None:
        """Make encoder, heads and what summarises a graph; called first in ``setup``."""
        self.setup_encoder()
        width = self.config.hidden
        self.widen, self.summarise = nn.Dense(2 * width), nn.Dense(width)

    def decoder(self, decision: str) -> Any:
        return self.decoders[decision]

    def summary(self, pooled: Float[Array, "D"], graph: jraph.GraphsTuple) -> Float[Array, "D"]:
        """Return the encoder's summary with the hardware's features."""
        shown = jnp.concatenate([pooled, hardware_features(graph)])
        return self.summarise(nn.silu(self.widen(shown)))

    @staticmethod
    def keys(decisions: tuple[str, ...], key: jax.Array) -> dict[str, Array]:
        """Return a key of its own for each decision."""
        return dict(zip(decisions, jax.random.split(key, len(decisions)), strict=True))
