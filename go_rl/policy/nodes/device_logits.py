"""Logits of devices for every unit at once, in GO's own form.

The graph is encoded once; what is left for each sample is linear in what the sample sees:
logits[b, t, u, k] = base[u, k] + sum_f weights[t, u, f] seen[b, t, u, k, f]
                   + sum_l latent[b, l] bends[l, u, k].
An untrained policy already prefers devices where a unit, its producers and its consumers were in
the iteration before (`FIRST`): its draws are connected pieces, not noise. Not so as published
(`NodesPolicyConfig.neighbours_first` False).

Dimension letters: ``B`` samples, ``T`` iterations, ``U`` units, ``K`` devices, ``F`` features of
`seen_devices` and one more, ``L`` graph-level numbers.
"""

from __future__ import annotations

from typing import NamedTuple

import flax.linen as nn
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from go_rl.policy.config import MAX_CHIPS, NodesPolicyConfig
from go_rl.policy.distributions.head_input import HeadInput
from go_rl.policy.distributions.surroundings import LARGEST

WAVES = 4
"""Cosines of a device's place among the others that describe it, beside its binary digits."""
DIGITS = (MAX_CHIPS - 1).bit_length()
"""Binary digits of a device's number."""
FIRST = (2.0, -0.5, 2.0, 2.0, -1.0)
"""First weights of what is seen: whether the unit was there, load, shares of producers and of
consumers there, how much slower the device is."""
BEND_WIDTH = 8
"""Width of the product of a unit and a device that a graph-level number scales."""
BEND = 2.0
"""Standard deviation of a logit that the graph-level numbers cause together, before training."""


class DeviceTerms(NamedTuple):
    """Terms of the logits of a graph's units, the same for all samples."""

    base: Float[Array, "U K"]
    weights: Float[Array, "T U F"]
    bends: Float[Array, "L U K"]


class DeviceLogits(nn.Module):
    """The network's part of the logits.

    Devices are scored one by one from what describes them, a device's key against what the unit
    looks for there, so that any number of them is served by the same weights.
    """

    config: NodesPolicyConfig

    @nn.compact
    def __call__(self, head: HeadInput, options: Float[Array, "U K"]) -> DeviceTerms:
        """Return the terms; ``options`` [U, K] as in `node_options`."""
        config, width = self.config, self.config.decoder_width
        unit = nn.Dense(width, name="project")(head.h)
        unit = nn.relu(unit + nn.Dense(width, name="context")(head.pooled))
        devices = described(jnp.isfinite(options).any(axis=0))
        key = nn.Dense(width, name="key")(devices)
        base = unit @ key.T / jnp.sqrt(jnp.float32(width))
        count = config.iterations * len(FIRST)
        own = nn.Dense(count, name="weigh", kernel_init=nn.initializers.normal(0.02))(unit)
        weights = own.reshape(len(own), config.iterations, -1)
        if config.neighbours_first:
            weights = weights + jnp.array(FIRST)
        bends = jnp.zeros((0, *options.shape))
        if config.directions:
            bent = nn.Dense(config.directions * BEND_WIDTH, name="bend")(head.h)
            bent = bent.reshape(len(bent), config.directions, BEND_WIDTH)
            turned = nn.Dense(BEND_WIDTH, name="bend_key")(devices)
            scale = BEND / jnp.sqrt(jnp.float32(BEND_WIDTH * config.directions))
            bends = jnp.einsum("ulw,kw->luk", bent, turned) * scale
        return DeviceTerms(base, jnp.swapaxes(weights, 0, 1), bends)


def device_logits(
    terms: DeviceTerms,
    first: int,
    seen: Float[Array, "#B T U K S"],
    options: Float[Array, "U K"],
    latent: Float[Array, "B L"],
) -> Float[Array, "B T U K"]:
    """Return logits of ``T`` iterations from the ``first`` on; ``seen`` as by `seen_devices`."""
    slower = jnp.where(jnp.isfinite(options), jnp.minimum(options, LARGEST), 0.0)
    weights = terms.weights[first : first + seen.shape[1]]
    fixed = terms.base + weights[..., -1:] * slower
    moved = jnp.einsum("btuks,tus->btuk", seen, weights[..., :-1])
    bent = jnp.einsum("bl,luk->buk", latent[:, : len(terms.bends)], terms.bends)
    return fixed[None] + moved + bent[:, None]


def described(exists: Bool[Array, "K"]) -> Float[Array, "K F"]:
    """Return what distinguishes devices: cosines of their place among all, and binary digits."""
    number = jnp.arange(len(exists))
    place = (number.astype(jnp.float32) + 0.5) / jnp.maximum(exists.astype(jnp.float32).sum(), 1.0)
    waves = jnp.cos(jnp.pi * place[:, None] * jnp.arange(1.0, WAVES + 1.0))
    digits = ((number[:, None] >> jnp.arange(DIGITS)) & 1).astype(jnp.float32)
    return jnp.concatenate([waves, 2.0 * digits - 1.0], axis=-1)
