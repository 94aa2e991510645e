"""GO's node decisions: a categorical choice for every unit and task, drawn for all at once.

T iterations, each conditioned on the choices of the one before (iterative non-autoregressive
decoding, GO, section 3.3): p(y^t | G) = prod_u p(y_u^t | h_G, y^(t-1)). The last are the plan.

Dimension letters: ``B`` samples, ``T`` iterations, ``U`` units, ``K`` choices of a unit.
"""

from __future__ import annotations

from typing import NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import jraph
from jaxtyping import Array, Float, Int

from go_rl.objectives.makespan.choices import LEVELS
from go_rl.policy.config import PolicyConfig
from go_rl.policy.decoders.node_logits import DeviceLogits, LevelLogits
from go_rl.policy.decoders.placement_decoder import NEVER


class NodeActions(NamedTuple):
    """Decisions of ``B`` samples."""

    chosen: Int[Array, "B T U"]
    """[B, T, U] device or level of each iteration."""
    options: Float[Array, "B U K"]
    """[B, U, K] among what it was chosen, the same in each sample; see `node_options`."""


class NodeLogProbs(NamedTuple):
    """Log-probabilities of the decisions."""

    chosen: Float[Array, "B T U"]
    free: Float[Array, "U"]
    """[U] 1 where there was a choice."""

    def parts(self, real: Float[Array, "U"]) -> tuple[tuple[Array, Array], ...]:
        """Return the log-probabilities whose ratios are clipped apart, each with its weights."""
        return ((self.chosen, jnp.broadcast_to(real * self.free, self.chosen.shape)),)


class NodeDecoder(nn.Module):
    """Distribution over devices (task placement) or levels (schedule, fusion)."""

    config: PolicyConfig
    task: str

    def setup(self) -> None:
        if self.task == "placement":
            self.score = DeviceLogits(self.config)
        else:
            self.score = LevelLogits(self.config, LEVELS)

    def log_probs(
        self,
        h: Float[Array, "U D"],
        pooled: Float[Array, "D"],
        graph: jraph.GraphsTuple,
        options: Float[Array, "U K"],
        before: Int[Array, "B U"] | None,
    ) -> Float[Array, "#B U K"]:
        """Return normalised log-probabilities of an iteration; the first knows no choices."""
        logits = self.score(h, pooled, graph, options, before)
        return jax.nn.log_softmax(jnp.where(jnp.isfinite(options), logits, NEVER))

    def sample(
        self,
        h: Float[Array, "U D"],
        pooled: Float[Array, "D"],
        graph: jraph.GraphsTuple,
        options: Float[Array, "U K"],
        key: Array,
        noise: Float[Array, "B"],
    ) -> NodeActions:
        """Draw [B] samples; ``noise`` [B] is a temperature: 1 draws, 0 takes the likeliest."""
        shape, before, chosen = (len(noise), *options.shape), None, []
        for one in jax.random.split(key, self.config.iterations):
            log_probs = self.log_probs(h, pooled, graph, options, before)
            draw = noise[:, None, None] * jax.random.gumbel(one, shape)
            before = jnp.argmax(log_probs + draw, axis=-1).astype(jnp.int32)
            chosen.append(before)
        return NodeActions(jnp.stack(chosen, axis=1), jnp.broadcast_to(options, shape))

    def log_prob(
        self,
        h: Float[Array, "U D"],
        pooled: Float[Array, "D"],
        graph: jraph.GraphsTuple,
        actions: NodeActions,
    ) -> tuple[NodeLogProbs, Float[Array, ""]]:
        """Return the log-probabilities of the decisions, and the mean entropy of a free unit."""
        options, before = actions.options[0], None
        free = (jnp.isfinite(options).sum(axis=-1) > 1).astype(jnp.float32)
        found, entropy = [], jnp.float32(0.0)
        for t in range(self.config.iterations):
            log_probs = self.log_probs(h, pooled, graph, options, before)
            before = actions.chosen[:, t]
            every = jnp.broadcast_to(log_probs, actions.options.shape)
            found.append(jnp.take_along_axis(every, before[..., None], axis=-1)[..., 0])
            unsure = -(jnp.exp(log_probs) * log_probs).sum(axis=-1).mean(axis=0)
            entropy += (unsure * free).sum() / jnp.maximum(free.sum(), 1.0)
        chosen = jnp.stack(found, axis=1)
        return NodeLogProbs(chosen, free), entropy / self.config.iterations
