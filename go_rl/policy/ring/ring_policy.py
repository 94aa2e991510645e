"""`RingPolicy`: an `OrderDecoder`, whose order is cut by dynamic programming, and a
`PlacementDecoder`, whose chips go through the constraint solver."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import jraph
from jaxtyping import Array, Float, Int

from go_rl.policy.config import RingPolicyConfig
from go_rl.policy.encoder.graph_arrays import node_array
from go_rl.policy.network import Encoded, Policy, head_input
from go_rl.policy.observations.blind import UNKNOWN_PLACE, without_orders
from go_rl.policy.ring.observation import RING_COLUMNS
from go_rl.policy.ring.order_decoder import OrderDecoder
from go_rl.policy.ring.placement_decoder import PlacementDecoder, work_before


class RingPolicy(Policy):
    """One policy for all graphs and rings."""

    config: RingPolicyConfig
    columns = RING_COLUMNS
    chip_decision = "placement"
    decoder_kinds = {"order": OrderDecoder, "placement": PlacementDecoder}  # noqa: RUF012

    @property
    def head_names(self) -> tuple[str, ...]:
        return self.config.decision_heads

    def setup(self) -> None:
        self.setup_encoder()
        if self.config.orders:
            self.order = OrderDecoder(self.config)
        self.placement = PlacementDecoder(self.config)

    def decoder(self, decision: str) -> Any:
        return getattr(self, decision)

    def summary(self, pooled: Float[Array, "D"], graph: jraph.GraphsTuple) -> Float[Array, "D"]:
        """Return the encoder's summary."""
        return pooled

    @staticmethod
    def keys(decisions: tuple[str, ...], key: jax.Array) -> dict[str, jax.Array]:
        """Return the key for each decision: none is drawn together with another."""
        return dict.fromkeys(decisions, key)

    def draw(
        self,
        encoded: Encoded,
        graph: jraph.GraphsTuple,
        decision: str,
        key: Array,
        noise: Float[Array, "B"],
    ) -> Any:
        head = head_input(encoded, self.seen(graph), decision)
        if decision == "placement":
            return self.placement.sample(head, key, noise, self.place(encoded, graph))
        return self.order.sample(head, key, noise)

    def seen(self, graph: jraph.GraphsTuple) -> jraph.GraphsTuple:
        graph = super().seen(graph)
        return graph if self.config.orders else without_orders(graph, self.columns)

    def place(self, encoded: Encoded, graph: jraph.GraphsTuple) -> Float[Array, "U"]:
        """Return [U] where the likeliest order puts each unit, as the share of the work before; the
        middle where chips have no prior, or the policy may know no order."""
        if not self.config.prior or self.blind:
            return jnp.full_like(encoded.real, UNKNOWN_PLACE)
        actions = self.draw(encoded, graph, "order", jax.random.key(0), jnp.zeros(1))
        return work_before(actions.scores[0, -1], node_array(graph, "share"), encoded.real)

    def chip_log_probs(
        self, encoded: Encoded, graph: jraph.GraphsTuple, chosen: Int[Array, "B T U"]
    ) -> Float[Array, "B T U K"]:
        """Return the distributions over chips in every iteration, each of which sees the [B, T, U]
        chips of the one before."""
        head = head_input(encoded, self.seen(graph), "placement")
        return self.placement.every_iteration(head, self.place(encoded, graph), chosen)

    def mix_log_prob(self, encoded: Encoded, mix: Float[Array, "B G"]) -> Float[Array, "B"]:
        """Return the log-density of graph-level decisions of the order."""
        return self.order.mix_log_prob(encoded.pooled, mix).sum(-1)
