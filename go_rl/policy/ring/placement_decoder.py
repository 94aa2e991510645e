"""Placement on a ring: a distribution over chips for every node (multi-chip modules, MLSys 2022).

With `RingPolicyConfig.prior`: chips lie on a line, so a node's distribution is a discretised bell
over them: where in the pipeline the node belongs, and how sure the policy is. It holds for any
number of chips. A first estimate of where it belongs comes from the policy's order: the share of
the work that comes earlier. Without it, as published, every chip has a logit of its own. Decisions
of one iteration, with the chip loads that follow from them, condition the next (GO, section 3.3);
those of the last go to the constraint solver.
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

FIRST_WIDTH = 0.5
"""Standard deviation of a node's chip before any training, in chips."""
LOG_WIDTH = (-2.5, 3.0)
"""Range of log standard deviations, in chips."""
FAR, NEAR = 0.2, 2.0
"""Largest shifts of a node: as a part of the pipeline, and in chips."""


class DrawnPlacements(NamedTuple):
    """``B`` placements as drawn, before the solver."""

    chosen: Int[Array, "B T U"]
    """[B, T, U] chips of each iteration."""
    log_probs: Float[Array, "B U K"]
    """[B, U, K] distributions of the last iteration."""
    place: Float[Array, "U"]
    """[U] share of the work before each unit, in the policy's order."""


class PlacementActions(NamedTuple):
    """Chips to credit."""

    chosen: Int[Array, "B T U"]
    possible: Bool[Array, "B U K"]
    """[B, U, K] chips among which the last iteration's were chosen; all under FIX, which credits
    the proposal."""
    place: Float[Array, "B U"]
    """[B, U] as drawn, the same in each sample."""
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
        self.emit = nn.Dense(3 if self.config.prior else MAX_CHIPS, kernel_init=zeros)

    def logits(
        self, head: HeadInput, place: Float[Array, "U"], before: Int[Array, "B U"], iteration: int
    ) -> Float[Array, "B U K"]:
        """Return [B, U, K] normalised log-probabilities of an iteration.

        ``place`` [U]: share of the work before each node. ``before`` [B, U]: chips of the
        iteration before; the first knows none.
        """
        known = place if self.config.prior else None
        seen = seen_chips(head.graph, before, head.num_devices, known) * float(iteration > 0)
        out = self.emit(nn.relu(self.project(head.h)[None] + self.condition(seen)))
        chip = jnp.arange(MAX_CHIPS)
        logits = self.bell(out, head.num_devices, place) if self.config.prior else out
        return jax.nn.log_softmax(jnp.where(chip < head.num_devices, logits, NEVER))

    @staticmethod
    def bell(
        out: Float[Array, "B U 3"], num_devices: Int[Array, ""], place: Float[Array, "U"]
    ) -> Float[Array, "B U K"]:
        """Return [B, U, K] logits of a bell whose middle and width are moved by ``out``."""
        count = num_devices.astype(jnp.float32)
        middle = count * (place[None] + FAR * nn.tanh(out[..., 0])) - 0.5
        middle = middle + NEAR * nn.tanh(out[..., 1])
        log_width = jnp.clip(jnp.log(FIRST_WIDTH) + out[..., 2], *LOG_WIDTH)
        apart = (jnp.arange(MAX_CHIPS) - middle[..., None]) * jnp.exp(-log_width)[..., None]
        return -0.5 * jnp.square(apart)

    def sample(
        self, head: HeadInput, key: Array, noise: Float[Array, "B"], place: Float[Array, "U"]
    ) -> DrawnPlacements:
        """Draw every iteration, around the ``place`` [U] of each unit.

        ``noise`` [B] as in `draw_choices`. The last iteration's chips are a proposal; under SAMPLE
        the solver draws them instead.
        """
        shape, chosen = (len(noise), len(head.h)), []
        before, log_probs = jnp.zeros(shape, jnp.int32), jnp.zeros((*shape, MAX_CHIPS))
        for t, one in enumerate(jax.random.split(key, self.config.iterations)):
            log_probs = self.logits(head, place, before, t)
            before = draw_choices(log_probs, noise, one)
            chosen.append(before)
        return DrawnPlacements(jnp.stack(chosen, axis=1), log_probs, place)

    def every_iteration(
        self, head: HeadInput, place: Float[Array, "U"], chosen: Int[Array, "B T U"]
    ) -> Float[Array, "B T U K"]:
        """Return the distributions of every iteration, given the [B, T, U] chips of all."""
        before, found = jnp.zeros_like(chosen[:, 0]), []
        for t in range(self.config.iterations):
            found.append(self.logits(head, place, before, t))
            before = chosen[:, t]
        return jnp.stack(jnp.broadcast_arrays(*found), axis=1)

    def log_prob(
        self, head: HeadInput, actions: PlacementActions
    ) -> tuple[PlacementLogProbs, Float[Array, ""]]:
        """Return log-probabilities, and the mean entropy of a unit's last distribution.

        The last iteration's are those of the cuts, where SAMPLE drew them; elsewhere of each
        unit's chip, renormalised over what was possible. A unit with one possible chip was decided
        by others: its log-probability is 0.
        """
        chosen, possible, place = actions.chosen, actions.possible, actions.place[0]
        before = jnp.zeros_like(chosen[:, 0])
        found, entropy, cuts = [], jnp.zeros(before.shape), jnp.zeros((0, 0))
        for t in range(self.config.iterations):
            log_probs = self.logits(head, place, before, t)
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


def work_before(
    scores: Float[Array, "U"], share: Float[Array, "U"], real: Float[Array, "U"]
) -> Float[Array, "U"]:
    """Return [U] the share of the work up to the middle of each node, by ascending score."""
    order = jnp.argsort(jnp.where(real > 0, scores, jnp.inf))
    sorted_share = share[order]
    middle = jnp.cumsum(sorted_share) - 0.5 * sorted_share
    return jnp.zeros_like(middle).at[order].set(middle)
