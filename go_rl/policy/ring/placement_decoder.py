"""Placement on a ring: a distribution over chips for every node (multi-chip modules, MLSys 2022).

Every chip has a logit of its own. Decisions of one iteration, with the chip loads that follow from
them, condition the next (GO, section 3.3); those of the last go to the constraint solver.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from go_rl.policy.config import MAX_CHIPS, RingPolicyConfig
from go_rl.policy.distributions.choices import (
    NEVER,
    ChoiceLogProbs,
    draw_choices,
    entropies,
    log_prob_of,
)
from go_rl.policy.distributions.head_input import HeadInput
from go_rl.policy.distributions.surroundings import seen_chips
from go_rl.policy.ring.cut_log_probs import CutWindows, cut_log_probs


class DrawnPlacements(NamedTuple):
    """``B`` placements as drawn, before the solver."""

    chosen: Int[Array, "B T U"]
    """[B, T, U] chips of each iteration."""
    log_probs: Float[Array, "B U K"]
    """[B, U, K] distributions of the last iteration."""


class PlacementActions(NamedTuple):
    """Chips to credit."""

    chosen: Int[Array, "B T U"]
    possible: Bool[Array, "B U K"]
    """[B, U, K] chips among which the last iteration's were chosen; all under FIX, which credits
    the proposal."""
    by_cuts: Bool[Array, "B"]
    """[B] samples whose last chips SAMPLE drew as the cuts of an order."""
    windows: CutWindows
    """Cut windows of the orders, with a leading axis ``B``; elsewhere arbitrary."""
    cuts: Int[Array, "B K1"]
    """[B, K + 1] the first position of each piece, then the number of units to the end."""


class PlacementLogProbs(NamedTuple):
    """Log-probabilities of placements."""

    chips: ChoiceLogProbs
    """Log-probabilities of chips that were drawn one by one: all but the last of samples drawn as
    cuts."""
    cuts: Float[Array, "B K"]
    """[B, K] of the pieces that were drawn one after the other."""
    pieces: Float[Array, "B K"]
    """[B, K] 1 where there is such a piece."""

    def parts(self, real: Float[Array, "U"]) -> tuple[tuple[Array, Array], ...]:
        """Return the log-probabilities whose ratios are clipped apart, each with its weights."""
        return (*self.chips.parts(real), (self.cuts, self.pieces))


class PlacementDecoder(nn.Module):
    """Distribution over chips."""

    outputs: ClassVar[tuple[str, ...]] = ("emit",)
    """Layers that give the numbers of the distribution."""
    config: RingPolicyConfig

    def setup(self) -> None:
        width = self.config.decoder_width
        zeros = nn.initializers.zeros
        self.project = nn.Dense(width)
        self.condition = nn.Dense(width)
        self.emit = nn.Dense(MAX_CHIPS, kernel_init=zeros)

    def logits(
        self, head: HeadInput, before: Int[Array, "B U"], iteration: int
    ) -> Float[Array, "B U K"]:
        """Return [B, U, K] normalised log-probabilities of an iteration; ``before`` [B, U]: chips
        of the iteration before, of which the first knows none."""
        seen = seen_chips(head.graph, before, head.num_devices) * float(iteration > 0)
        out = self.emit(nn.relu(self.project(head.h)[None] + self.condition(seen)))
        chip = jnp.arange(MAX_CHIPS)
        return jax.nn.log_softmax(jnp.where(chip < head.num_devices, out, NEVER))

    def sample(self, head: HeadInput, key: Array, noise: Float[Array, "B"]) -> DrawnPlacements:
        """Draw every iteration.

        ``noise`` [B] as in `draw_choices`. The last iteration's chips are a proposal; under SAMPLE
        the solver draws them instead.
        """
        shape, chosen = (len(noise), len(head.h)), []
        before, log_probs = jnp.zeros(shape, jnp.int32), jnp.zeros((*shape, MAX_CHIPS))
        for t, one in enumerate(jax.random.split(key, self.config.iterations)):
            log_probs = self.logits(head, before, t)
            before = draw_choices(log_probs, noise, one)
            chosen.append(before)
        return DrawnPlacements(jnp.stack(chosen, axis=1), log_probs)

    def log_prob(
        self, head: HeadInput, actions: PlacementActions
    ) -> tuple[PlacementLogProbs, Float[Array, ""]]:
        """Return log-probabilities, and the mean entropy of a unit's last distribution.

        The last iteration's are those of the cuts, where SAMPLE drew them; elsewhere of each
        unit's chip, renormalised over what was possible. A unit with one possible chip was decided
        by others: its log-probability is 0.
        """
        chosen, possible = actions.chosen, actions.possible
        before = jnp.zeros_like(chosen[:, 0])
        found, entropy, cuts = [], jnp.zeros(before.shape), jnp.zeros((0, 0))
        for t in range(self.config.iterations):
            log_probs = self.logits(head, before, t)
            if t == self.config.iterations - 1:
                masked = jnp.where(possible, log_probs, NEVER)
                entropy = entropies(log_probs)
                cuts = jax.vmap(cut_log_probs)(log_probs, actions.windows, actions.cuts)
                log_probs = jax.nn.log_softmax(masked, axis=-1)
            before = chosen[:, t]
            found.append(log_prob_of(log_probs, before))
        weight = jnp.broadcast_to(head.real, entropy.shape)
        mean = (entropy * weight).sum() / jnp.maximum(weight.sum(), 1.0)
        drawn = (possible.sum(-1) > 1) & ~actions.by_cuts[:, None]
        free = jnp.ones(chosen.shape).at[:, -1].set(drawn.astype(jnp.float32))
        pieces = (actions.cuts[:, 1:] > actions.cuts[:, :-1]) & actions.by_cuts[:, None]
        chips = ChoiceLogProbs(jnp.stack(found, axis=1), free)
        return PlacementLogProbs(chips, cuts, pieces.astype(jnp.float32)), mean
