"""Heads of sequential dispatch: *select* (decision schedule) and *place* (decision placement).

What the network decides for a graph are the weights of the heads for a whole rollout, drawn from a
Gaussian: exploration in the space of parameters (Plappert et al., ICLR 2018). The choices of a
rollout are the likeliest ones given the weights (see `go_rl.policy.dispatch`), so a plan is a
function of what was drawn, and credit is exact.

Dimension letters: ``B`` samples, ``F`` features of a head, ``D`` width of embeddings.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from flax.linen.initializers import zeros
from jaxtyping import Array, Float, Float32

from go_rl.policy.dispatch.features import PLACE_FEATURES, SELECT_FEATURES
from go_rl.policy.distributions.gaussian import gaussian
from go_rl.policy.distributions.head_input import HeadInput

SEEN = {"placement": PLACE_FEATURES, "schedule": SELECT_FEATURES}
"""Features seen by the head of each decision."""
LISTED = {
    "placement": {"end": -4.0, "ends first": 1.0},
    "schedule": {"upward rank": 20.0, "earliest start": -1.0},
}
"""Mean weights of an untrained policy: a list scheduler, earliest finish time by upward rank
(HEFT). Others are 0."""
SPREAD = 1.2
"""Standard deviation of a weight before training, unless `SPREADS` has another."""
SPREADS = {
    "placement": {
        "distance from an even pipeline by layer": 3.0,
        "distance from an even pipeline by work": 3.0,
        "load against progress": 1.8,
    },
    "schedule": {
        "upward rank": 4.8, "number": 4.8, "layer": 4.8, "earliest start": 0.9, "waiting": 0.6,
    },
}  # fmt: skip
REACH = 4.0
"""Untrained standard deviations by which one unit of output moves a mean."""
LOG_SPREAD = (-2.5, 1.5)
"""Range of the logarithm of a standard deviation over the untrained one."""


class DispatchActions(NamedTuple):
    """Decisions of ``B`` samples."""

    weights: Float[Array, "B F"]
    """[B, F] of a head's features."""


class DispatchLogProbs(NamedTuple):
    """Log-densities of the decisions."""

    weights: Float[Array, "B"]

    def parts(self, real: Float[Array, "U"]) -> tuple[tuple[Array, Array], ...]:
        """Return the log-densities whose ratios are clipped apart, each with its weights."""
        return ((self.weights, jnp.ones_like(self.weights)),)


class DispatchDecoder(nn.Module):
    """Distribution over the weights of a head."""

    outputs: ClassVar[tuple[str, ...]] = ("mix_mean", "mix_spread")
    """Layers that give the numbers of the distribution."""
    decision: str

    def setup(self) -> None:
        count = len(SEEN[self.decision])
        self.mix_mean = nn.Dense(count, kernel_init=zeros)
        self.mix_spread = nn.Dense(count, kernel_init=zeros)

    def mixing(self, pooled: Float[Array, "D"]) -> tuple[Float[Array, "F"], Float[Array, "F"]]:
        """Return [F] mean and [F] log standard deviation, in those of an untrained policy."""
        return REACH * self.mix_mean(pooled), jnp.clip(self.mix_spread(pooled), *LOG_SPREAD)

    def sample(self, head: HeadInput, key: Array, noise: Float[Array, "B"]) -> DispatchActions:
        """Draw [B] samples; ``noise`` [B] scales the deviations from the mean (0: the mean)."""
        mean, spread = self.mixing(head.pooled)
        listed, scale = untrained_weights(self.decision)
        drawn = jax.random.normal(key, (noise.shape[0], mean.shape[0]))
        drawn = mean + noise[:, None] * jnp.exp(spread) * drawn
        return DispatchActions(jnp.asarray(listed) + scale * drawn)

    def log_prob(
        self, head: HeadInput, actions: DispatchActions
    ) -> tuple[DispatchLogProbs, Float[Array, ""]]:
        """Return the log-densities of the decisions, and the mean entropy of a weight."""
        mean, spread = self.mixing(head.pooled)
        listed, scale = untrained_weights(self.decision)
        density = gaussian((actions.weights - listed) / scale, mean, spread)
        return DispatchLogProbs(density.sum(axis=-1)), spread.mean()


def untrained_weights(
    decision: str,
) -> tuple[Float32[np.ndarray, "F"], Float32[np.ndarray, "F"]]:
    """Return [F] mean and [F] standard deviation of the weights of an untrained policy."""
    names, first, spread = SEEN[decision], LISTED[decision], SPREADS[decision]
    mean = np.array([first.get(name, 0.0) for name in names], np.float32)
    return mean, np.array([spread.get(name, SPREAD) for name in names], np.float32)
