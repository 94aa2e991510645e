"""`Policy`: encoder, recurrent task heads and the decoders of all tasks."""

from __future__ import annotations

from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import jraph
from jaxtyping import Array, Bool, Float, Int

from go_rl.policy.config import PolicyConfig
from go_rl.policy.decoders.order_decoder import OrderActions, OrderDecoder, OrderLogProbs
from go_rl.policy.decoders.placement_decoder import PlacementDecoder, PlacementLogProbs, work_before
from go_rl.policy.encoder import Encoder
from go_rl.policy.graph_arrays import node_array
from go_rl.policy.task_head import TaskHeads

Params = Any
"""Pytree of float32 arrays, as flax makes it."""


class Encoded(NamedTuple):
    """A graph after the encoder and the task heads; computed once, shared by all samples."""

    order: Float[Array, "U D"]
    placement: Float[Array, "U D"]
    pooled: Float[Array, "D"]


class Policy(nn.Module):
    """One policy for all tasks, graphs and packages."""

    config: PolicyConfig

    def setup(self) -> None:
        self.encoder = Encoder(self.config)
        self.heads = TaskHeads(self.config)
        self.order = OrderDecoder(self.config)
        self.placement = PlacementDecoder(self.config)

    def encode(self, graph: jraph.GraphsTuple, real: Float[Array, "U"]) -> Encoded:
        """Embed the nodes for every task."""
        h, pooled = self.encoder(graph, real)
        tasks = self.heads(h, real)
        return Encoded(tasks["order"], tasks["placement"], pooled)

    def draw_orders(
        self, encoded: Encoded, graph: jraph.GraphsTuple, key: Array, noise: Float[Array, "B"]
    ) -> OrderActions:
        """Draw scores; see `OrderDecoder.sample`."""
        return self.order.sample(encoded.order, encoded.pooled, graph, key, noise)

    def judge_orders(
        self, encoded: Encoded, graph: jraph.GraphsTuple, actions: OrderActions
    ) -> tuple[OrderLogProbs, Float[Array, ""]]:
        """Log-densities of scores; see `OrderDecoder.log_prob`."""
        return self.order.log_prob(encoded.order, encoded.pooled, graph, actions)

    def place(
        self, encoded: Encoded, graph: jraph.GraphsTuple, real: Float[Array, "U"]
    ) -> Float[Array, "U"]:
        """Return [U] where the likeliest order puts each node, as the share of the work before."""
        actions = self.draw_orders(encoded, graph, jax.random.key(0), jnp.zeros(1))
        return work_before(actions.scores[0, -1], node_array(graph, "share"), real)

    def draw_placements(
        self,
        encoded: Encoded,
        graph: jraph.GraphsTuple,
        chips: Int[Array, ""],
        place: Float[Array, "U"],
        key: Array,
        noise: Float[Array, "B"],
    ) -> tuple[Int[Array, "B T U"], Float[Array, "B U K"]]:
        """Draw chips; see `PlacementDecoder.sample`."""
        return self.placement.sample(encoded.placement, graph, chips, place, key, noise)

    def judge_placements(
        self,
        encoded: Encoded,
        graph: jraph.GraphsTuple,
        chips: Int[Array, ""],
        place: Float[Array, "U"],
        chosen: Int[Array, "B T U"],
        possible: Bool[Array, "B U K"],
    ) -> PlacementLogProbs:
        """Log-probabilities of chips; see `PlacementDecoder.log_prob`."""
        return self.placement.log_prob(encoded.placement, graph, chips, place, chosen, possible)

    def __call__(self, graph: jraph.GraphsTuple, real: Float[Array, "U"], key: Array) -> Any:
        """Touch every parameter; used to initialise them."""
        encoded = self.encode(graph, real)
        chips, noise = jnp.int32(2), jnp.ones(1)
        place = self.place(encoded, graph, real)
        return (
            self.draw_orders(encoded, graph, key, noise),
            self.draw_placements(encoded, graph, chips, place, key, noise),
        )
