"""The placement task: a distribution over chips for every node (multi-chip modules, MLSys 2022).

Chips lie on a line, so a node's distribution is a discretised bell over them: where in the pipeline
the node belongs, and how sure the policy is. It holds for any number of chips. Where it belongs is
first said by the task before, as the share of the work that comes earlier in the policy's order.
Decisions of one iteration, with the chip loads that follow from them, condition the next (GO,
section 3.3); those of the last go to the constraint solver.
"""

from __future__ import annotations

from typing import NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import jraph
from jaxtyping import Array, Bool, Float, Int

from go_rl.policy.config import MAX_CHIPS, PolicyConfig
from go_rl.policy.graph_arrays import edges, node_array

FIRST_WIDTH = 0.5
"""Standard deviation of a node's chip before any training, in chips."""
LOG_WIDTH = (-2.5, 3.0)
"""Range of log standard deviations, in chips."""
FAR, NEAR = 0.2, 2.0
"""Largest shifts of a node: as a part of the pipeline, and in chips."""
NEVER = -1e9
"""Logit of what cannot be chosen, such as a chip that does not exist."""


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


class PlacementLogProbs(NamedTuple):
    """Log-probabilities of decisions."""

    chosen: Float[Array, "B T U"]
    """[B, T, U] of the chosen chips, renormalised over what was possible."""
    free: Bool[Array, "B U"]
    """[B, U] units with several possible chips; others decided for the rest."""

    def parts(self, real: Float[Array, "U"]) -> tuple[tuple[Array, Array], ...]:
        """Return the log-probabilities whose ratios are clipped apart, with their weights."""
        weight = jnp.broadcast_to(real, self.chosen.shape).at[:, -1].set(self.free * real)
        return ((self.chosen, weight),)


class PlacementDecoder(nn.Module):
    """Distribution over chips."""

    config: PolicyConfig

    def setup(self) -> None:
        width = self.config.decoder_width
        zeros = nn.initializers.zeros
        self.project = nn.Dense(width)
        self.condition = nn.Dense(width)
        self.emit = nn.Dense(3, kernel_init=zeros)

    def logits(
        self,
        h: Float[Array, "U D"],
        graph: jraph.GraphsTuple,
        chips: Int[Array, ""],
        place: Float[Array, "U"],
        before: Int[Array, "B U"],
        iteration: int,
    ) -> Float[Array, "B U K"]:
        """Return [B, U, K] normalised log-probabilities of an iteration.

        ``place`` [U]: share of the work before each node. ``before`` [B, U]: chips of the
        iteration before; the first knows none.
        """
        seen = loads_around(graph, before, chips, place) * float(iteration > 0)
        out = self.emit(nn.relu(self.project(h)[None] + self.condition(seen)))
        count = chips.astype(jnp.float32)
        middle = count * (place[None] + FAR * nn.tanh(out[..., 0])) - 0.5
        middle = middle + NEAR * nn.tanh(out[..., 1])
        log_width = jnp.clip(jnp.log(FIRST_WIDTH) + out[..., 2], *LOG_WIDTH)
        chip = jnp.arange(MAX_CHIPS)
        apart = (chip - middle[..., None]) * jnp.exp(-log_width)[..., None]
        return jax.nn.log_softmax(jnp.where(chip < chips, -0.5 * jnp.square(apart), NEVER))

    def sample(
        self,
        h: Float[Array, "U D"],
        graph: jraph.GraphsTuple,
        chips: Int[Array, ""],
        place: Float[Array, "U"],
        key: Array,
        noise: Float[Array, "B"],
    ) -> tuple[Int[Array, "B T U"], Float[Array, "B U K"]]:
        """Draw every iteration; return [B, T, U] chips and the last [B, U, K] log-probabilities.

        ``noise`` [B] is a temperature: 1 draws, 0 takes the likeliest chip. The last iteration's
        chips are a proposal; under SAMPLE the solver draws them instead.
        """
        before, chosen = jnp.zeros((noise.shape[0], h.shape[0]), jnp.int32), []
        log_probs = jnp.zeros((noise.shape[0], h.shape[0], MAX_CHIPS))
        for t, one in enumerate(jax.random.split(key, self.config.iterations)):
            log_probs = self.logits(h, graph, chips, place, before, t)
            draw = noise[:, None, None] * jax.random.gumbel(one, log_probs.shape)
            before = jnp.argmax(log_probs + draw, axis=-1).astype(jnp.int32)
            chosen.append(before)
        return jnp.stack(chosen, axis=1), log_probs

    def log_prob(
        self,
        h: Float[Array, "U D"],
        graph: jraph.GraphsTuple,
        chips: Int[Array, ""],
        real: Float[Array, "U"],
        actions: PlacementActions,
    ) -> tuple[PlacementLogProbs, Float[Array, ""]]:
        """Return the log-probabilities of chips, the last renormalised over what was possible, and
        the mean entropy of a unit's last distribution.

        A unit with one possible chip was decided by others: its log-probability is 0.
        """
        chosen, possible, place = actions.chosen, actions.possible, actions.place[0]
        before = jnp.zeros_like(chosen[:, 0])
        found, entropy = [], jnp.zeros(before.shape)
        for t in range(self.config.iterations):
            log_probs = self.logits(h, graph, chips, place, before, t)
            if t == self.config.iterations - 1:
                masked = jnp.where(possible, log_probs, NEVER)
                entropy = -(jnp.exp(log_probs) * log_probs).sum(axis=-1)
                log_probs = jax.nn.log_softmax(masked, axis=-1)
            before = chosen[:, t]
            found.append(jnp.take_along_axis(log_probs, before[..., None], axis=-1)[..., 0])
        weight = jnp.broadcast_to(real, entropy.shape)
        mean = (entropy * weight).sum() / jnp.maximum(weight.sum(), 1.0)
        return PlacementLogProbs(jnp.stack(found, axis=1), possible.sum(-1) > 1), mean


def work_before(
    scores: Float[Array, "U"], share: Float[Array, "U"], real: Float[Array, "U"]
) -> Float[Array, "U"]:
    """Return [U] the share of the work up to the middle of each node, by ascending score."""
    order = jnp.argsort(jnp.where(real > 0, scores, jnp.inf))
    sorted_share = share[order]
    middle = jnp.cumsum(sorted_share) - 0.5 * sorted_share
    return jnp.zeros_like(middle).at[order].set(middle)


def loads_around(
    graph: jraph.GraphsTuple,
    chip: Int[Array, "B U"],
    chips: Int[Array, ""],
    place: Float[Array, "U"],
) -> Float[Array, "B U 7"]:
    """Return, for each node: its chip, the loads of that chip and its neighbours against the mean,
    the room towards producers and consumers, and the distance from its place."""
    share, count = node_array(graph, "share"), chips.astype(jnp.float32)
    batch, units = chip.shape
    row = jnp.arange(batch)[:, None]
    load = jnp.zeros((batch, MAX_CHIPS + 2)).at[row, chip + 1].add(share * count)
    own, left, right = (jnp.take_along_axis(load, chip + i, axis=1) - 1.0 for i in (1, 0, 2))
    at = chip.T.astype(jnp.float32)
    senders, receivers = edges(graph)
    last = jraph.segment_max(at[senders], receivers, units)
    first = -jraph.segment_max(-at[receivers], senders, units)
    below = jnp.where(jnp.isfinite(last), at - last, 2.0).T
    above = jnp.where(jnp.isfinite(first), first - at, 2.0).T
    far = chip + 0.5 - count * place
    seen = jnp.stack([(chip + 0.5) / count, own, left, right, below, above, far], axis=-1)
    return jnp.clip(seen, -4.0, 4.0)
