"""Logits of GO's node decisions: a device or a level of priority for every unit, all in parallel.

Both read the unit's embedding for the task and what the iteration before decided around the unit
(GO, section 3.3). Devices are scored one by one from what describes them, so that any number of
them is served by the same weights.

Dimension letters: ``B`` samples, ``U`` units, ``K`` choices of a unit, ``D`` width of embeddings.
"""

from __future__ import annotations

import flax.linen as nn
import jax
import jax.numpy as jnp
import jraph
from jaxtyping import Array, Bool, Float, Int

from go_rl.policy.config import MAX_CHIPS, PolicyConfig
from go_rl.policy.graph_arrays import edges, node_array

WAVES = 4
"""Cosines of a device's place among the others that describe it, beside its binary digits."""
DIGITS = (MAX_CHIPS - 1).bit_length()
"""Binary digits of a device's number."""
LARGEST = 4.0
"""Features of devices are cut here."""
SEEN_DEVICES, SEEN_LEVELS = 4, 3
"""Features of `seen_devices` and `seen_levels`."""


class DeviceLogits(nn.Module):
    """Affinity of units to devices: a device's key against what the unit looks for there."""

    config: PolicyConfig

    @nn.compact
    def __call__(
        self,
        h: Float[Array, "U D"],
        pooled: Float[Array, "D"],
        graph: jraph.GraphsTuple,
        options: Float[Array, "U K"],
        before: Int[Array, "B U"] | None,
    ) -> Float[Array, "#B U K"]:
        """Return logits; ``before`` [B, U] are the devices of the iteration before, if any.

        ``options`` [U, K]: log2 of a unit's seconds against its fastest device; inf: not possible.
        """
        width = self.config.decoder_width
        there = jnp.isfinite(options)
        slower = jnp.where(there, jnp.minimum(options, LARGEST), 0.0)[None, :, :, None]
        seen = seen_devices(graph, before, there.any(axis=0))
        seen = jnp.concatenate([seen, jnp.broadcast_to(slower, (*seen.shape[:-1], 1))], axis=-1)
        unit = nn.Dense(width, name="project")(h) + nn.Dense(width, name="context")(pooled)
        hidden = nn.relu(unit[None, :, None] + nn.Dense(width, name="condition")(seen))
        key = nn.Dense(width, name="key")(described(there.any(axis=0)))
        return jnp.einsum("bukw,kw->buk", hidden, key) / jnp.sqrt(jnp.float32(width))


class LevelLogits(nn.Module):
    """Logits of priority levels."""

    config: PolicyConfig
    levels: int

    @nn.compact
    def __call__(
        self,
        h: Float[Array, "U D"],
        pooled: Float[Array, "D"],
        graph: jraph.GraphsTuple,
        options: Float[Array, "U K"],
        before: Int[Array, "B U"] | None,
    ) -> Float[Array, "#B U K"]:
        """Return logits; ``before`` [B, U] are the levels of the iteration before, if any."""
        width = self.config.decoder_width
        seen = jnp.zeros((1, len(h), SEEN_LEVELS))
        if before is not None:
            seen = seen_levels(graph, before.astype(jnp.float32) / (self.levels - 1.0))
        unit = nn.Dense(width, name="project")(h) + nn.Dense(width, name="context")(pooled)
        hidden = nn.relu(unit[None] + nn.Dense(width, name="condition")(seen))
        return nn.Dense(self.levels, name="emit")(hidden)


def described(exists: Bool[Array, "K"]) -> Float[Array, "K F"]:
    """Return what tells devices apart: cosines of their place among all, and binary digits."""
    number = jnp.arange(len(exists))
    place = (number.astype(jnp.float32) + 0.5) / jnp.maximum(_count(exists), 1.0)
    waves = jnp.cos(jnp.pi * place[:, None] * jnp.arange(1.0, WAVES + 1.0))
    digits = ((number[:, None] >> jnp.arange(DIGITS)) & 1).astype(jnp.float32)
    return jnp.concatenate([waves, 2.0 * digits - 1.0], axis=-1)


def _count(exists: Bool[Array, "K"]) -> Float[Array, ""]:
    return exists.astype(jnp.float32).sum()


def seen_devices(
    graph: jraph.GraphsTuple, device: Int[Array, "B U"] | None, exists: Bool[Array, "K"]
) -> Float[Array, "#B U K 4"]:
    """Return, for each unit and device: whether the unit was there, the load of the device against
    the mean, and the shares of the unit's producers and consumers there; zeros without decisions.
    """
    share = node_array(graph, "share")
    width, units = len(exists), len(share)
    if device is None:
        return jnp.zeros((1, units, width, SEEN_DEVICES))
    batch, row = len(device), jnp.arange(len(device))[:, None]
    load = jnp.zeros((batch, width)).at[row, device].add(share) * _count(exists) - 1.0
    senders, receivers = edges(graph)

    def neighbours(of: Array, others: Array) -> Array:
        zeros = jnp.zeros((batch, units, width))
        count = zeros.at[row, of[None], device[:, others]].add(1.0)
        return count / jnp.maximum(count.sum(axis=-1, keepdims=True), 1.0)

    columns = [
        jax.nn.one_hot(device, width),
        jnp.broadcast_to(jnp.clip(load, -LARGEST, LARGEST)[:, None], (batch, units, width)),
        neighbours(receivers, senders),
        neighbours(senders, receivers),
    ]
    return jnp.stack(columns, axis=-1)


def seen_levels(graph: jraph.GraphsTuple, level: Float[Array, "B U"]) -> Float[Array, "B U 3"]:
    """Return, for each unit: its level in 0 to 1, and how far the highest of its producers and of
    its consumers lie above it; 0 where there are none."""
    columns = level.T
    senders, receivers = edges(graph)

    def above(of: Array, others: Array) -> Array:
        highest = jraph.segment_max(columns[others], of, len(columns))
        return jnp.where(jnp.isfinite(highest), highest - columns, 0.0)

    seen = [columns - 0.5, above(receivers, senders), above(senders, receivers)]
    return jnp.swapaxes(jnp.stack(seen, axis=-1), 0, 1)
