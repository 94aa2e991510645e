"""`DispatchPolicy`: from a graph to a choice among the weights of the heads of a dispatcher."""

from __future__ import annotations

import jraph
from jaxtyping import Array, Float, Int

from go_rl.policy.config import DispatchPolicyConfig
from go_rl.policy.dispatch.prototypes import Choice, DrawnWeights, PrototypeDecoder
from go_rl.policy.encoder.encoder import Encoder
from go_rl.policy.makespan_policy import MakespanPolicy
from go_rl.policy.network import Encoded

PLAN = "plan"
"""The one head: weights of the dispatcher's heads."""


class DispatchPolicy(MakespanPolicy):
    """One policy for all graphs and connected devices; units are taken one after the other."""

    config: DispatchPolicyConfig
    decoder_kinds = {"decoders_plan": PrototypeDecoder}  # noqa: RUF012

    @property
    def head_names(self) -> tuple[str, ...]:
        """Name of the one head."""
        return (PLAN,)

    def setup(self) -> None:
        self.setup_summary()
        self.decoders = {PLAN: PrototypeDecoder(self.config)}

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
