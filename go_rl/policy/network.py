"""`Policy`: what all networks share (GO): an encoder; recurrent decision heads, each of which sees
what attention made of the head before; for each head a decoder."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import jraph
from jaxtyping import Array, Float, Int

from go_rl.policy.config import PolicyConfig
from go_rl.policy.distributions.head_input import HeadInput
from go_rl.policy.encoder.encoder import Encoder
from go_rl.policy.encoder.heads import DecisionHeads
from go_rl.policy.observations.blind import without_edges
from go_rl.policy.observations.policy_graph import Columns

ENCODER = "encoder"
"""Name of the encoder's parameters among the policy's."""
Params = Any
"""Pytree of float32 arrays, as flax makes it."""


class Encoded(NamedTuple):
    """A graph after encoder and heads; computed once, shared by all samples."""

    heads: dict[str, Float[Array, "U D"]]
    pooled: Float[Array, "D"]
    """Summary of the graph (makespan: and of the hardware), for graph-level decisions."""
    real: Float[Array, "U"]
    """[U] 1 for real units, 0 for padding."""
    num_devices: Int[Array, ""]


def head_input(encoded: Encoded, graph: jraph.GraphsTuple, decision: str) -> HeadInput:
    """Return what the decoder of a decision reads."""
    h = encoded.heads[decision]
    return HeadInput(h, encoded.pooled, graph, encoded.real, encoded.num_devices)


class Policy(nn.Module):
    """Abstract: one policy for all graphs and hardware of an objective."""

    config: PolicyConfig
    blind: bool = False
    """Whether the network sees no edges and nothing that derives from them; see `without_edges`."""

    columns: ClassVar[Columns]
    """Columns of what the policy sees of a problem."""
    decoder_kinds: ClassVar[dict[str, Any]]
    """Classes of the decoders, by the name of their parameters; each lists its ``outputs``."""

    @property
    @abstractmethod
    def head_names(self) -> tuple[str, ...]:
        """Names of the heads, in the order of the recurrence."""

    @abstractmethod
    def decoder(self, decision: str) -> Any:
        """Return the decoder of a decision."""

    @abstractmethod
    def summary(self, pooled: Float[Array, "D"], graph: jraph.GraphsTuple) -> Float[Array, "D"]:
        """Return what decoders read of the whole graph, from the encoder's summary of it."""

    @abstractmethod
    def draw(
        self,
        encoded: Encoded,
        graph: jraph.GraphsTuple,
        decision: str,
        key: Array,
        noise: Float[Array, "B"],
        *given: Any,
    ) -> Any:
        """Draw [B] decisions; ``noise`` [B] scales the deviations from the likeliest one. A node
        policy is given its options, and where it starts."""

    @staticmethod
    @abstractmethod
    def keys(decisions: tuple[str, ...], key: jax.Array) -> dict[str, jax.Array]:
        """Return the random key of each decision that is drawn together with others."""

    def setup_encoder(self) -> None:
        """Make encoder and heads; called first in ``setup``."""
        self.encoder = Encoder(self.config)
        self.heads = DecisionHeads(self.config, self.head_names)

    def encode(
        self, graph: jraph.GraphsTuple, real: Float[Array, "U"], num_devices: Int[Array, ""]
    ) -> Encoded:
        """Embed the units for every decision."""
        graph = self.seen(graph)
        h, pooled = self.encoder(graph, real)
        return Encoded(self.heads(h, real), self.summary(pooled, graph), real, num_devices)

    def seen(self, graph: jraph.GraphsTuple) -> jraph.GraphsTuple:
        """Return the graph as the network may see it."""
        return without_edges(graph, self.columns) if self.blind else graph

    def judge(
        self, encoded: Encoded, graph: jraph.GraphsTuple, decision: str, actions: Any
    ) -> tuple[Any, Float[Array, ""]]:
        """Return log-densities of decisions and their entropy; see the decoder's ``log_prob``."""
        head = head_input(encoded, self.seen(graph), decision)
        return self.decoder(decision).log_prob(head, actions)

    def __call__(
        self,
        graph: jraph.GraphsTuple,
        real: Float[Array, "U"],
        key: Array,
        noise: Array,
        options: Mapping[str, Any],
    ) -> Any:
        """Touch every parameter; used to initialise them."""
        encoded = self.encode(graph, real, jnp.int32(2))
        return [
            self.draw(encoded, graph, name, key, noise, *((options[name],) if options else ()))
            for name in self.head_names
        ]
