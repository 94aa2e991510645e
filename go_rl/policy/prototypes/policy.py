"""`PrototypePolicy`: from a graph to a choice among vectors of weights."""

from __future__ import annotations

from typing import ClassVar

import jraph
from jaxtyping import Array, Float, Int

from go_rl.policy.config import PrototypePolicyConfig
from go_rl.policy.encoder.encoder import Encoder
from go_rl.policy.hardware_policy import HardwarePolicy
from go_rl.policy.network import Encoded
from go_rl.policy.prototypes.decoder import Choice, DrawnWeights, PrototypeDecoder

PLAN = "plan"
"""The one head: weights from which a plan follows."""


class PrototypePolicy(HardwarePolicy):
    """Abstract: one policy for all graphs and hardware of an objective."""

    config: PrototypePolicyConfig
    decoder_kinds = {"decoders_plan": PrototypeDecoder}  # noqa: RUF012
    weights: ClassVar[int]
    """Number of weights of a plan."""

    @property
    def head_names(self) -> tuple[str, ...]:
        """Name of the one head."""
        return (PLAN,)

    def setup(self) -> None:
        self.setup_summary()
        self.decoders = {PLAN: PrototypeDecoder(self.config, self.weights)}

    def setup_encoder(self) -> None:
        """Make the encoder; nothing reads the embeddings of single units."""
        self.encoder = Encoder(self.config)

    def encode(
        self, graph: jraph.GraphsTuple, real: Float[Array, "U"], chips: Int[Array, ""]
    ) -> Encoded:
        """Embed the graph."""
        graph = self.seen(graph)
        _, pooled = self.encoder(graph, real)
        return Encoded({}, self.summary(pooled, graph), real, chips)

    def draw(
        self,
        encoded: Encoded,
        graph: jraph.GraphsTuple,
        decision: str,
        key: Array,
        noise: Float[Array, "B"],
    ) -> DrawnWeights:
        """Draw [B] weights; see `PrototypeDecoder.sample`."""
        return self.decoders[decision].sample(encoded.pooled, key, noise)

    def choice(self, encoded: Encoded) -> Choice:
        """Return the distribution from which `draw` draws."""
        return self.decoders[PLAN].choice(encoded.pooled)
