"""`Policy`: one network for rings and connected devices (GO), with shared parameters.

Encoder; recurrent decision heads, each of which sees what attention made of the head before; for
each head a decoder. On a ring (objective ring): an `OrderDecoder`, whose order is cut by dynamic
programming, and a `PlacementDecoder`, whose chips go through the constraint solver. For makespan,
form ``orders``: an `OrderDecoder` for each decision, whose graph-level numbers hold what else it
decides (`EXTRAS`), and a critic of these; form ``nodes``, GO's own: a `NodeDecoder` for each; form
``dispatch``: a `DispatchDecoder` for what is placed and one for what is next.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import jraph
from jaxtyping import Array, Float, Int

from go_rl.core import Objective
from go_rl.core.problem import DECISIONS
from go_rl.policy.config import PolicyConfig
from go_rl.policy.critic import Critic, decision_features
from go_rl.policy.decoders.dispatch_decoder import DispatchDecoder
from go_rl.policy.decoders.head_input import HeadInput
from go_rl.policy.decoders.node_decoder import NodeDecoder
from go_rl.policy.decoders.order_decoder import OrderActions, OrderDecoder
from go_rl.policy.decoders.placement_decoder import PlacementDecoder, work_before
from go_rl.policy.encoder.encoder import Encoder
from go_rl.policy.encoder.graph_arrays import hardware_features, node_array
from go_rl.policy.heads import DecisionHeads
from go_rl.policy.observations.blind import without_edges
from go_rl.policy.observations.makespan import MAKESPAN_ORDERS

HEADS = {Objective.RING: ("order", "placement"), Objective.MAKESPAN: DECISIONS}
"""Heads of the policies of each objective, in the order of the recurrence."""
DISPATCHED = ("placement", "schedule")
"""Heads of the form ``dispatch``."""
FUSION_ORDERS = 4
"""Node-level reference priorities of fusion; see `go_rl.policy.plan_decoders.makespan_decoder`."""
PLACEMENT_EXTRAS = 5
"""Attachment, caution, layers whole, warp, chronology."""
LOGITS = {"placement": len(MAKESPAN_ORDERS), "schedule": 0, "fusion": FUSION_ORDERS}
"""Mixing logits among a decision's `EXTRAS`: the last of them."""
EXTRAS = {
    "placement": PLACEMENT_EXTRAS + LOGITS["placement"],
    "schedule": LOGITS["schedule"],
    "fusion": 1 + LOGITS["fusion"],
}
"""Graph-level numbers of each decision beside those of its order. Placement: attachment and caution
of the list scheduler, whether layers stay whole, how unevenly the pipeline is cut, chronology of
the list scheduler, then logits that mix its order. Fusion: share left unfused, then logits that mix
node-level priorities."""
ENCODER = "encoder"
"""Name of the encoder's parameters among the policy's."""
Params = Any
"""Pytree of float32 arrays, as flax makes it."""


class Encoded(NamedTuple):
    """A graph after encoder and heads; computed once, shared by all samples."""

    heads: dict[str, Float[Array, "U D"]]
    pooled: Float[Array, "D"]
    """Summary of the graph (makespan: and of the hardware), for graph-level decisions."""
    known: Float[Array, "K"]
    """The same as the critic sees it; see `known_of`."""
    real: Float[Array, "U"]
    """[U] 1 for real units, 0 for padding."""
    chips: Int[Array, ""]


def head_input(encoded: Encoded, graph: jraph.GraphsTuple, decision: str) -> HeadInput:
    """Return what the decoder of a decision reads."""
    h = encoded.heads[decision]
    return HeadInput(h, encoded.pooled, graph, encoded.real, encoded.chips)


def known_of(graph: jraph.GraphsTuple, real: Float[Array, "U"]) -> Float[Array, "K"]:
    """Return what a critic knows of a graph: features of the hardware, then means of the units'."""
    features = node_array(graph, "features") * real[:, None]
    means = features.sum(0) / jnp.maximum(real.sum(), 1.0)
    return jnp.concatenate([hardware_features(graph), means])


class Policy(nn.Module):
    """One policy for all graphs and hardware of an objective."""

    config: PolicyConfig
    objective: Objective = Objective.RING
    blind: bool = False
    """Whether the network sees no edges and nothing that derives from them; see `without_edges`."""

    @property
    def decision_widths(self) -> dict[str, int]:
        """G of each decision for makespan: mixing logits, numbers along directions, `EXTRAS`."""
        return {t: len(MAKESPAN_ORDERS) + self.config.directions + EXTRAS[t] for t in DECISIONS}

    @property
    def chooses_by_unit(self) -> bool:
        """Whether each unit chooses among options by itself: form ``nodes``."""
        return self.objective is not Objective.RING and self.config.form == "nodes"

    @property
    def carries(self) -> bool:
        """Whether draws go on from the best plan known; see `PolicyConfig.carry`."""
        return self.chooses_by_unit and self.config.carry

    @property
    def dispatches(self) -> bool:
        """Whether units are selected and placed one after the other: form ``dispatch``."""
        return self.objective is not Objective.RING and self.config.form == "dispatch"

    @property
    def has_critic(self) -> bool:
        """Whether a critic judges graph-level decisions before any unit follows them."""
        return self.objective is not Objective.RING and self.config.form == "orders"

    @property
    def head_names(self) -> tuple[str, ...]:
        """Heads, in the order of the recurrence."""
        return DISPATCHED if self.dispatches else HEADS[self.objective]

    @property
    def decoder_kinds(self) -> dict[str, Any]:
        """Classes of the decoders, by the name of their parameters; each lists its ``outputs``."""
        if self.objective is Objective.RING:
            return {"order": OrderDecoder, "placement": PlacementDecoder}
        kind = {"orders": OrderDecoder, "nodes": NodeDecoder, "dispatch": DispatchDecoder}
        return {f"decoders_{name}": kind[self.config.form] for name in self.head_names}

    def setup(self) -> None:
        config = self.config
        self.encoder = Encoder(config)
        self.heads = DecisionHeads(config, self.head_names)
        if self.objective is Objective.RING:
            self.order, self.placement = OrderDecoder(config), PlacementDecoder(config)
            return
        self.widen, self.summarise = nn.Dense(2 * config.hidden), nn.Dense(config.hidden)
        if self.chooses_by_unit:
            self.decoders = {name: NodeDecoder(config, name) for name in DECISIONS}
        elif self.dispatches:
            self.decoders = {name: DispatchDecoder(config, name) for name in DISPATCHED}
        else:
            self.decoders = {
                name: OrderDecoder(config, len(MAKESPAN_ORDERS), EXTRAS[name]) for name in DECISIONS
            }
            self.critic = Critic()

    def _decoder(self, decision: str) -> Any:
        ring = self.objective is Objective.RING
        return getattr(self, decision) if ring else self.decoders[decision]

    def _seen(self, graph: jraph.GraphsTuple) -> jraph.GraphsTuple:
        """The graph as the network may see it."""
        return without_edges(graph, self.objective) if self.blind else graph

    def encode(
        self, graph: jraph.GraphsTuple, real: Float[Array, "U"], chips: Int[Array, ""]
    ) -> Encoded:
        """Embed the units for every decision."""
        graph = self._seen(graph)
        h, pooled = self.encoder(graph, real)
        if self.objective is not Objective.RING:
            seen = jnp.concatenate([pooled, hardware_features(graph)])
            pooled = self.summarise(nn.silu(self.widen(seen)))
        return Encoded(self.heads(h, real), pooled, known_of(graph, real), real, chips)

    def draw(
        self,
        encoded: Encoded,
        graph: jraph.GraphsTuple,
        decision: str,
        key: Array,
        noise: Float[Array, "B"],
        options: Float[Array, "U K"] | None = None,
        start: Int[Array, "U"] | None = None,
    ) -> Any:
        """Draw [B] decisions; see the decoder's ``sample``.

        ``noise`` [B] scales the deviations from the likeliest decision. ``options`` [U, K]: what
        each unit may choose, ``start`` [U]: what the first iteration sees; form ``nodes`` only.
        """
        decoder = self._decoder(decision)
        head = head_input(encoded, self._seen(graph), decision)
        if isinstance(decoder, PlacementDecoder):
            return decoder.sample(head, key, noise, self.place(encoded, graph))
        if options is None:
            return decoder.sample(head, key, noise)
        return decoder.sample(head, key, noise, options, start)

    def place(self, encoded: Encoded, graph: jraph.GraphsTuple) -> Float[Array, "U"]:
        """Return [U] where the likeliest order of a ring puts each unit, as the share of the work
        before."""
        actions = self.draw(encoded, graph, "order", jax.random.key(0), jnp.zeros(1))
        return work_before(actions.scores[0, -1], node_array(graph, "share"), encoded.real)

    def chip_log_probs(
        self, encoded: Encoded, graph: jraph.GraphsTuple, chosen: Int[Array, "B T U"]
    ) -> Float[Array, "B T U K"]:
        """Return the distributions over a ring's chips in every iteration, each of which sees the
        [B, T, U] chips of the one before."""
        head = head_input(encoded, self._seen(graph), "placement")
        return self.placement.every_iteration(head, self.place(encoded, graph), chosen)

    def mix_log_prob(self, encoded: Encoded, mix: Float[Array, "B G"]) -> Float[Array, "B"]:
        """Return the log-density of graph-level decisions of a ring's order."""
        return self.order.mix_log_prob(encoded.pooled, mix).sum(-1)

    def propose(
        self, encoded: Encoded, decision: str, key: Array, noise: Float[Array, "B"]
    ) -> Float[Array, "B G"]:
        """Draw graph-level decisions; see `OrderDecoder.sample_mix`."""
        return self._decoder(decision).sample_mix(encoded.pooled, key, noise)

    def follow(
        self,
        encoded: Encoded,
        graph: jraph.GraphsTuple,
        decision: str,
        mix: Float[Array, "B G"],
        key: Array,
        noise: Float[Array, "B"],
    ) -> OrderActions:
        """Draw what follows graph-level decisions; see `OrderDecoder.sample_scores`."""
        keys = jax.random.split(key, self.config.iterations)
        head = head_input(encoded, self._seen(graph), decision)
        return self._decoder(decision).sample_scores(head, mix, keys, noise)

    def criticise(
        self, known: Float[Array, "K"], mixes: Mapping[str, Float[Array, "B G"]]
    ) -> Float[Array, "M B"]:
        """Return the scores that each member of the critic gives to graph-level decisions."""
        orders = len(MAKESPAN_ORDERS)
        seen = {t: decision_features(mix, orders, LOGITS[t]) for t, mix in mixes.items()}
        return self.critic(known, seen)

    def judge(
        self, encoded: Encoded, graph: jraph.GraphsTuple, decision: str, actions: Any
    ) -> tuple[Any, Float[Array, ""]]:
        """Return log-densities of decisions and their entropy; see the decoder's ``log_prob``."""
        head = head_input(encoded, self._seen(graph), decision)
        return self._decoder(decision).log_prob(head, actions)

    def __call__(
        self,
        graph: jraph.GraphsTuple,
        real: Float[Array, "U"],
        key: Array,
        noise: Array,
        options: Mapping[str, Float[Array, "U _"]],
    ) -> Any:
        """Touch every parameter; used to initialise them."""
        encoded = self.encode(graph, real, jnp.int32(2))
        heads = self.head_names
        if not self.has_critic:
            return [self.draw(encoded, graph, d, key, noise, options.get(d)) for d in heads]
        mixes = {d: self.propose(encoded, d, key, noise) for d in heads}
        scores = self.criticise(encoded.known, mixes)
        followed = [self.follow(encoded, graph, d, mix, key, noise) for d, mix in mixes.items()]
        return scores, followed
