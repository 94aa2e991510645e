"""The order of units: scores whose list schedule is cut by dynamic programming.

A graph-level decision (how to mix the reference orders, how far to bend along learned directions)
comes first; node-level scores follow, for T iterations, each conditioned on the scores before
(iterative non-autoregressive decoding, GO section 3.3). Both are Gaussian, so credit is exact:
the plan is a function of the scores.

Dimension letters: ``B`` samples, ``G`` graph-level numbers (J orders + D directions), ``T``
iterations.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from go_rl.objectives.ring.reference_orders import REFERENCE_ORDERS
from go_rl.policy.config import RingPolicyConfig
from go_rl.policy.distributions.head_input import HeadInput
from go_rl.policy.distributions.surroundings import seen_scores
from go_rl.policy.encoder.graph_arrays import node_array

ORDERS = len(REFERENCE_ORDERS)
BEND = 0.1
"""Largest part of the whole order by which one direction, or a node's own shift, moves a node."""
FIRST_SIGMA = 0.01
"""Standard deviation of scores before any training, as a part of the whole order."""
FIRST_SPREAD = 1.5
"""Standard deviation of mixing logits before any training."""
LOG_SIGMA = (-7.0, -2.0)
"""Range of log standard deviations of scores."""
LOG_SPREAD = (-3.0, 1.5)
"""Range of log standard deviations of graph-level decisions."""


class OrderActions(NamedTuple):
    """Decisions of ``B`` samples."""

    mix: Float[Array, "B G"]
    """[B, G] graph-level decision: mixing logits, then steps along directions."""
    scores: Float[Array, "B T U"]
    """[B, T, U] scores of each iteration; the last are the order."""


class OrderLogProbs(NamedTuple):
    """Log-densities of the decisions."""

    mix: Float[Array, "B G"]
    scores: Float[Array, "B T U"]

    def parts(self, real: Float[Array, "U"]) -> tuple[tuple[Array, Array], ...]:
        """Return the log-densities whose ratios are clipped apart, each with its weights: one for
        the graph-level decision, one for each unit and iteration."""
        mix = self.mix.sum(-1)
        return (mix, jnp.ones_like(mix)), (self.scores, jnp.broadcast_to(real, self.scores.shape))


class OrderDecoder(nn.Module):
    """Distribution over scores."""

    outputs: ClassVar[tuple[str, ...]] = ("mix_mean", "mix_spread", "emit")
    """Layers that give the numbers of the distribution."""
    config: RingPolicyConfig

    def setup(self) -> None:
        width = self.config.decoder_width
        count = ORDERS + self.config.directions
        zeros = nn.initializers.zeros
        self.mix_mean = nn.Dense(count, kernel_init=zeros)
        self.mix_spread = nn.Dense(count, kernel_init=zeros)
        self.project = nn.Dense(width)
        self.condition = nn.Dense(width)
        self.emit = nn.Dense(ORDERS + self.config.directions + 2, kernel_init=zeros)

    def mixing(self, pooled: Float[Array, "D"]) -> tuple[Float[Array, "G"], Float[Array, "G"]]:
        """Return [G] mean and [G] log standard deviation of the graph-level decision."""
        mean = self.mix_mean(pooled)
        first = jnp.where(jnp.arange(mean.shape[0]) < ORDERS, FIRST_SPREAD, 1.0)
        spread = jnp.log(first) + self.mix_spread(pooled)
        return mean, jnp.clip(spread, *LOG_SPREAD)

    def scoring(
        self, head: HeadInput, mix: Float[Array, "B G"], before: Float[Array, "B U"], iteration: int
    ) -> tuple[Float[Array, "B U"], Float[Array, "B U"]]:
        """Return [B, U] mean and [B, U] log standard deviation of an iteration's scores.

        ``before`` [B, U]: the scores of the iteration before; the first knows none.
        """
        seen = seen_scores(head.graph, before) * float(iteration > 0)
        hidden = nn.relu(self.project(head.h)[None] + self.condition(seen))
        out = self.emit(hidden)
        last = ORDERS + self.config.directions
        tilt, bend, own = jnp.split(out, (ORDERS, last), axis=-1)
        weights = nn.softmax(mix[:, None, :ORDERS] + tilt, axis=-1)
        places = (weights * node_array(head.graph, "places")[None]).sum(axis=-1)
        steps = mix[:, None, ORDERS:last] / jnp.sqrt(float(self.config.directions))
        bent = BEND * ((steps * nn.tanh(bend)).sum(axis=-1) + nn.tanh(own[..., 0]))
        log_sigma = jnp.clip(jnp.log(FIRST_SIGMA) + own[..., 1], *LOG_SIGMA)
        return places + bent, log_sigma

    def sample(self, head: HeadInput, key: Array, noise: Float[Array, "B"]) -> OrderActions:
        """Draw [B] samples; ``noise`` [B] scales the deviations from the mean (0: the mean)."""
        keys = jax.random.split(key, self.config.iterations + 1)
        mean, spread = self.mixing(head.pooled)
        drawn = jax.random.normal(keys[0], (noise.shape[0], mean.shape[0]))
        mix = mean + noise[:, None] * jnp.exp(spread) * drawn
        before, scores = jnp.zeros((len(noise), len(head.h))), []
        for t in range(self.config.iterations):
            middle, log_sigma = self.scoring(head, mix, before, t)
            draw = jax.random.normal(keys[1 + t], middle.shape)
            before = middle + noise[:, None] * jnp.exp(log_sigma) * draw
            scores.append(before)
        return OrderActions(mix, jnp.stack(scores, axis=1))

    def mix_log_prob(
        self, pooled: Float[Array, "D"], mix: Float[Array, "B G"]
    ) -> Float[Array, "B G"]:
        """Return the log-densities of graph-level decisions."""
        return gaussian(mix, *self.mixing(pooled))

    def log_prob(
        self, head: HeadInput, actions: OrderActions
    ) -> tuple[OrderLogProbs, Float[Array, ""]]:
        """Return the log-densities of the decisions, and the mean entropy of a decision."""
        spread = self.mixing(head.pooled)[1]
        mix = self.mix_log_prob(head.pooled, actions.mix)
        before = jnp.zeros_like(actions.scores[:, 0])
        found, sigmas = [], []
        for t in range(self.config.iterations):
            middle, log_sigma = self.scoring(head, actions.mix, before, t)
            found.append(gaussian(actions.scores[:, t], middle, log_sigma))
            sigmas.append(log_sigma)
            before = actions.scores[:, t]
        entropy = spread.mean() + jnp.stack(sigmas).mean()
        return OrderLogProbs(mix, jnp.stack(found, axis=1)), entropy


def gaussian(
    values: Float[Array, "*X"], mean: Float[Array, "*#X"], log_sigma: Float[Array, "*#X"]
) -> Float[Array, "*X"]:
    """Return log N(values; mean, sigma^2), elementwise, without the constant."""
    return -0.5 * jnp.square((values - mean) * jnp.exp(-log_sigma)) - log_sigma
