"""GO's node decisions: a categorical choice for every unit and decision, drawn for all at once.

T iterations, each conditioned on the choices of the one before (iterative non-autoregressive
decoding, GO, section 3.3): p(y^t | G) = prod_u p(y_u^t | h_G, y^(t-1)). The last are the plan.

Dimension letters: ``B`` samples, ``T`` iterations, ``U`` units, ``K`` choices of a unit, ``D``
width of embeddings.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from go_rl.objectives.makespan.choices import LEVELS
from go_rl.policy.config import MAX_CHIPS, PolicyConfig
from go_rl.policy.decoders.choices import (
    NEVER,
    ChoiceLogProbs,
    draw_choices,
    entropies,
    log_prob_of,
)
from go_rl.policy.decoders.head_input import HeadInput
from go_rl.policy.decoders.surroundings import LARGEST, seen_devices, seen_levels

WAVES = 4
"""Cosines of a device's place among the others that describe it, beside its binary digits."""
DIGITS = (MAX_CHIPS - 1).bit_length()
"""Binary digits of a device's number."""


class NodeActions(NamedTuple):
    """Decisions of ``B`` samples."""

    chosen: Int[Array, "B T U"]
    """[B, T, U] device or level of each iteration."""
    options: Float[Array, "B U K"]
    """[B, U, K] among what it was chosen, the same in each sample; see `node_options`."""


class NodeLogits(nn.Module):
    """Logits of a device (decision placement) or of a level of priority for every unit.

    Devices are scored one by one from what describes them, a device's key against what the unit
    looks for there, so that any number of them is served by the same weights.
    """

    config: PolicyConfig
    decision: str

    @nn.compact
    def __call__(
        self, head: HeadInput, options: Float[Array, "U K"], before: Int[Array, "B U"] | None
    ) -> Float[Array, "#B U K"]:
        """Return logits; ``before`` [B, U] are the choices of the iteration before, if any.

        ``options`` [U, K]: of devices log2 of a unit's seconds against its fastest device; inf:
        not possible.
        """
        width = self.config.decoder_width
        unit = nn.Dense(width, name="project")(head.h)
        unit = unit + nn.Dense(width, name="context")(head.pooled)
        condition = nn.Dense(width, name="condition")
        if self.decision != "placement":
            level = None if before is None else before.astype(jnp.float32) / (LEVELS - 1.0)
            hidden = nn.relu(unit[None] + condition(seen_levels(head.graph, level)))
            return nn.Dense(LEVELS, name="emit")(hidden)
        there = jnp.isfinite(options)
        slower = jnp.where(there, jnp.minimum(options, LARGEST), 0.0)[None, :, :, None]
        seen = seen_devices(head.graph, before, there.any(axis=0))
        seen = jnp.concatenate([seen, jnp.broadcast_to(slower, (*seen.shape[:-1], 1))], axis=-1)
        hidden = nn.relu(unit[None, :, None] + condition(seen))
        key = nn.Dense(width, name="key")(described(there.any(axis=0)))
        return jnp.einsum("bukw,kw->buk", hidden, key) / jnp.sqrt(jnp.float32(width))


def described(exists: Bool[Array, "K"]) -> Float[Array, "K F"]:
    """Return what distinguishes devices: cosines of their place among all, and binary digits."""
    number = jnp.arange(len(exists))
    place = (number.astype(jnp.float32) + 0.5) / jnp.maximum(exists.astype(jnp.float32).sum(), 1.0)
    waves = jnp.cos(jnp.pi * place[:, None] * jnp.arange(1.0, WAVES + 1.0))
    digits = ((number[:, None] >> jnp.arange(DIGITS)) & 1).astype(jnp.float32)
    return jnp.concatenate([waves, 2.0 * digits - 1.0], axis=-1)


class NodeDecoder(nn.Module):
    """Distribution over devices (decision placement) or levels (schedule, fusion)."""

    outputs: ClassVar[tuple[str, ...]] = ("emit", "key")
    """Layers that give the numbers of the distribution: of levels, or of devices."""
    config: PolicyConfig
    decision: str

    def setup(self) -> None:
        self.score = NodeLogits(self.config, self.decision)

    def log_probs(
        self, head: HeadInput, options: Float[Array, "U K"], before: Int[Array, "B U"] | None
    ) -> Float[Array, "#B U K"]:
        """Return normalised log-probabilities of an iteration; the first knows no choices."""
        logits = self.score(head, options, before)
        return jax.nn.log_softmax(jnp.where(jnp.isfinite(options), logits, NEVER))

    def sample(
        self, head: HeadInput, key: Array, noise: Float[Array, "B"], options: Float[Array, "U K"]
    ) -> NodeActions:
        """Draw [B] samples; ``noise`` [B] as in `draw_choices`."""
        before, chosen = None, []
        for one in jax.random.split(key, self.config.iterations):
            log_probs = self.log_probs(head, options, before)
            before = draw_choices(log_probs, noise, one)
            chosen.append(before)
        among = jnp.broadcast_to(options, (len(noise), *options.shape))
        return NodeActions(jnp.stack(chosen, axis=1), among)

    def log_prob(
        self, head: HeadInput, actions: NodeActions
    ) -> tuple[ChoiceLogProbs, Float[Array, ""]]:
        """Return the log-probabilities of the decisions, and the mean entropy of a free unit."""
        options, before = actions.options[0], None
        free = (jnp.isfinite(options).sum(axis=-1) > 1).astype(jnp.float32)
        found, entropy = [], jnp.float32(0.0)
        for t in range(self.config.iterations):
            log_probs = self.log_probs(head, options, before)
            before = actions.chosen[:, t]
            found.append(log_prob_of(log_probs, before))
            unsure = entropies(log_probs).mean(axis=0)
            entropy += (unsure * free).sum() / jnp.maximum(free.sum(), 1.0)
        chosen = jnp.stack(found, axis=1)
        return ChoiceLogProbs(chosen, free), entropy / self.config.iterations
