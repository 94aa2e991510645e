"""`StepPolicy`: one policy for placement, schedule and fusion (GO), with shared parameters.

Encoder as for rings; recurrent task heads, each of which sees what attention made of the task
before; for each task a decoder. Form ``orders``: an `OrderDecoder`, whose graph-level numbers hold
what else the task decides (`EXTRAS`). Form ``nodes``, GO's own: a `NodeDecoder`. `StepDecoder` in
`go_rl.policy.makespan.decisions` turns decisions into plans.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import jraph
from jaxtyping import Array, Float

from go_rl.core.problem import TASKS
from go_rl.policy.config import PolicyConfig
from go_rl.policy.critic import Critic, decision_features
from go_rl.policy.decoders.node_decoder import NodeActions, NodeDecoder, NodeLogProbs
from go_rl.policy.decoders.order_decoder import OrderActions, OrderDecoder, OrderLogProbs
from go_rl.policy.encoder import Encoder
from go_rl.policy.graph_arrays import hardware_features, node_array
from go_rl.policy.makespan.observation import STEP_ORDERS
from go_rl.policy.task_head import TaskHeads

FUSION_ORDERS = 4
"""Node-level reference priorities of the fusion task; see `go_rl.policy.makespan.decisions`."""
PLACEMENT_EXTRAS = 5
"""Attachment, caution, layers whole, warp, chronology."""
LOGITS = {"placement": len(STEP_ORDERS), "schedule": 0, "fusion": FUSION_ORDERS}
"""Mixing logits among a task's `EXTRAS`: the last of them."""
EXTRAS = {
    "placement": PLACEMENT_EXTRAS + LOGITS["placement"],
    "schedule": LOGITS["schedule"],
    "fusion": 1 + LOGITS["fusion"],
}
"""Graph-level numbers of each task beside those of its order. Placement: attachment and caution of
the list scheduler, whether layers stay whole, how unevenly the pipeline is cut, chronology of the
list scheduler, then logits that mix its order. Fusion: share left unfused, then logits that mix
node-level priorities."""


class StepEncoded(NamedTuple):
    """A graph after encoder and task heads; computed once, shared by all samples."""

    tasks: dict[str, Float[Array, "U D"]]
    pooled: Float[Array, "D"]
    """What is known of the whole graph and the hardware; graph-level decisions follow from it."""
    known: Float[Array, "K"]
    """The same as the critic sees it; see `known_of`."""


def known_of(graph: jraph.GraphsTuple, real: Float[Array, "U"]) -> Float[Array, "K"]:
    """Return what a critic knows of a graph: features of the hardware, then means of the units'."""
    features = node_array(graph, "features") * real[:, None]
    means = features.sum(0) / jnp.maximum(real.sum(), 1.0)
    return jnp.concatenate([hardware_features(graph), means])


class StepPolicy(nn.Module):
    """One policy for the tasks of a step."""

    config: PolicyConfig

    @property
    def decision_widths(self) -> dict[str, int]:
        """G of each task: mixing logits, steps along directions, `EXTRAS`."""
        return {t: len(STEP_ORDERS) + self.config.directions + EXTRAS[t] for t in TASKS}

    def setup(self) -> None:
        self.encoder = Encoder(self.config)
        self.heads = TaskHeads(self.config, TASKS)
        self.widen, self.summarise = nn.Dense(2 * self.config.hidden), nn.Dense(self.config.hidden)
        if self.config.step_form == "nodes":
            self.decoders = {task: NodeDecoder(self.config, task) for task in TASKS}
        else:
            self.decoders = {
                task: OrderDecoder(self.config, len(STEP_ORDERS), EXTRAS[task]) for task in TASKS
            }
            self.critic = Critic()

    def encode(self, graph: jraph.GraphsTuple, real: Float[Array, "U"]) -> StepEncoded:
        """Embed the units for every task."""
        h, pooled = self.encoder(graph, real)
        known = jnp.concatenate([pooled, hardware_features(graph)])
        summary = self.summarise(nn.silu(self.widen(known)))
        return StepEncoded(self.heads(h, real), summary, known_of(graph, real))

    def propose(
        self, encoded: StepEncoded, task: str, key: Array, noise: Float[Array, "B"]
    ) -> Float[Array, "B G"]:
        """Draw graph-level decisions of a task; see `OrderDecoder.sample_mix`."""
        return self.decoders[task].sample_mix(encoded.pooled, key, noise)

    def follow(
        self,
        encoded: StepEncoded,
        graph: jraph.GraphsTuple,
        task: str,
        mix: Float[Array, "B G"],
        key: Array,
        noise: Float[Array, "B"],
    ) -> OrderActions:
        """Draw what follows graph-level decisions; see `OrderDecoder.sample_scores`."""
        keys = jax.random.split(key, self.config.iterations)
        return self.decoders[task].sample_scores(encoded.tasks[task], graph, mix, keys, noise)

    def criticise(
        self, known: Float[Array, "K"], mixes: Mapping[str, Float[Array, "B G"]]
    ) -> Float[Array, "M B"]:
        """Return what each member of the critic thinks of graph-level decisions."""
        orders = len(STEP_ORDERS)
        seen = {t: decision_features(mix, orders, LOGITS[t]) for t, mix in mixes.items()}
        return self.critic(known, seen)

    def draw(
        self,
        encoded: StepEncoded,
        graph: jraph.GraphsTuple,
        task: str,
        key: Array,
        noise: Float[Array, "B"],
        options: Mapping[str, Float[Array, "U _"]],
    ) -> NodeActions:
        """Draw [B] decisions of the form ``nodes``; see `NodeDecoder.sample`."""
        decoder: Any = self.decoders[task]
        h = encoded.tasks[task]
        return decoder.sample(h, encoded.pooled, graph, options[task], key, noise)

    def judge(
        self,
        encoded: StepEncoded,
        graph: jraph.GraphsTuple,
        task: str,
        actions: OrderActions | NodeActions,
    ) -> tuple[OrderLogProbs | NodeLogProbs, Float[Array, ""]]:
        """Log-densities of a task's decisions; see the decoder's ``log_prob``."""
        decoder: Any = self.decoders[task]
        return decoder.log_prob(encoded.tasks[task], encoded.pooled, graph, actions)

    def __call__(
        self,
        graph: jraph.GraphsTuple,
        real: Float[Array, "U"],
        key: Array,
        noise: Array,
        options: Mapping[str, Float[Array, "U _"]],
    ) -> Any:
        """Touch every parameter; used to initialise them."""
        encoded = self.encode(graph, real)
        if self.config.step_form == "nodes":
            return [self.draw(encoded, graph, task, key, noise, options) for task in TASKS]
        mixes = {task: self.propose(encoded, task, key, noise) for task in TASKS}
        scores = self.criticise(encoded.known, mixes)
        followed = [self.follow(encoded, graph, t, mix, key, noise) for t, mix in mixes.items()]
        return scores, followed
