"""`PrototypeDecoder`: a distribution over vectors of weights, as a choice among prototypes.

The weights are those of a dispatcher's heads, or those that order a ring's units. ``K`` prototypes,
chosen so that the best of few is good on every graph, are part of the policy. From the graph the
network gives a preference among them, and around each an offset; a deviation of one size for all is
drawn around that. Samples are drawn without replacement, the preferred first: a random order by
Plackett and Luce, through Gumbel noise (Kool, van Hoof, Welling 2019).

Dimension letters: ``B`` samples, ``K`` prototypes, ``W`` weights, ``D`` embeddings.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
from flax.linen.initializers import zeros
from jaxtyping import Array, Float, Int

from go_rl.policy.config import PrototypePolicyConfig

DEVIATION = 0.2
"""Standard deviation of each weight around its mean, in those of untrained weights."""


class Choice(NamedTuple):
    """Distribution of one graph."""

    preference: Float[Array, "K"]
    """[K] log-odds of coming next."""
    mean: Float[Array, "K W"]
    """[K, W] prototypes with their offsets."""


class DrawnWeights(NamedTuple):
    """``B`` samples."""

    deviations: Float[Array, "B W"]
    """[B, W] weights, as the plans of the policy take them."""
    prototype: Int[Array, "B"]
    """[B] prototype of each."""


class PrototypeDecoder(nn.Module):
    """Prototypes, and the layers that choose among them."""

    outputs: ClassVar[tuple[str, ...]] = ("prefer", "offset")
    """Layers that give the numbers of the distribution; at zero, every graph gets the prototypes as
    they are, in their own order."""
    config: PrototypePolicyConfig
    weights: int
    """``W``."""

    def setup(self) -> None:
        width, count = self.config.hidden, self.config.prototypes
        self.prototypes = self.param("prototypes", _first_prototypes, (count, self.weights))
        self.choose, self.prefer = nn.Dense(width), nn.Dense(count, kernel_init=zeros)
        self.look, self.know = nn.Dense(width), nn.Dense(width, use_bias=False)
        self.offset = nn.Dense(self.weights, kernel_init=zeros)

    def choice(self, pooled: Float[Array, "D"]) -> Choice:
        """Return the distribution of a graph with summary ``pooled``."""
        preference = self.prefer(nn.silu(self.choose(pooled)))
        seen = nn.silu(self.look(pooled) + self.know(self.prototypes))
        return Choice(preference, self.prototypes + self.offset(seen))

    def sample(
        self, pooled: Float[Array, "D"], key: Array, noise: Float[Array, "B"]
    ) -> DrawnWeights:
        """Draw [B] samples, each prototype once before any comes again; ``noise`` [B] scales the
        deviations. Where all of it is 0, the order is that of the preferences."""
        one, two = jax.random.split(key)
        choice = self.choice(pooled)
        count = choice.preference.shape[0]
        gumbel = jnp.where(noise.max() > 0, jax.random.gumbel(one, (count,)), 0.0)
        order = jnp.argsort(-(choice.preference + gumbel), stable=True)
        chosen = order[jnp.arange(noise.shape[0]) % count]
        drawn = jax.random.normal(two, (noise.shape[0], self.weights))
        return DrawnWeights(choice.mean[chosen] + noise[:, None] * DEVIATION * drawn, chosen)


def _first_prototypes(key: Array, shape: tuple[int, ...]) -> Float[Array, "K W"]:
    """An untrained policy: zero, which is a list scheduler, and random weights around it."""
    return jax.random.normal(key, shape).at[0].set(0.0)
