"""`RingPolicy`: chips for every unit of a ring, as the multi-chip policy was published."""

from __future__ import annotations

from typing import Any

import jax
import jraph
from jaxtyping import Array, Float

from go_rl.policy.config import RingPolicyConfig
from go_rl.policy.network import Encoded, Policy, head_input
from go_rl.policy.observations.blind import without_orders
from go_rl.policy.ring.observation import RING_COLUMNS
from go_rl.policy.ring.placement_decoder import PlacementDecoder

PLACEMENT = "placement"
"""The one decision."""


class RingPolicy(Policy):
    """One policy for all graphs and rings; it knows no order of the units but their edges."""

    config: RingPolicyConfig
    columns = RING_COLUMNS
    decoder_kinds = {PLACEMENT: PlacementDecoder}  # noqa: RUF012

    @property
    def head_names(self) -> tuple[str, ...]:
        """Names of the heads."""
        return (PLACEMENT,)

    def setup(self) -> None:
        self.setup_encoder()
        self.placement = PlacementDecoder(self.config)

    def decoder(self, decision: str) -> Any:
        return getattr(self, decision)

    def summary(self, pooled: Float[Array, "D"], graph: jraph.GraphsTuple) -> Float[Array, "D"]:
        """Return the encoder's summary."""
        return pooled

    @staticmethod
    def keys(decisions: tuple[str, ...], key: jax.Array) -> dict[str, jax.Array]:
        """Return the key of the one decision."""
        return dict.fromkeys(decisions, key)

    def draw(
        self,
        encoded: Encoded,
        graph: jraph.GraphsTuple,
        decision: str,
        key: Array,
        noise: Float[Array, "B"],
    ) -> Any:
        """Draw [B] decisions; ``noise`` [B] scales the deviations from the likeliest one."""
        return self.placement.sample(head_input(encoded, self.seen(graph), decision), key, noise)

    def seen(self, graph: jraph.GraphsTuple) -> jraph.GraphsTuple:
        """Return the graph as the network may see it."""
        return without_orders(super().seen(graph), self.columns)
