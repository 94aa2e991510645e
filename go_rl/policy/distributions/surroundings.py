"""Surroundings of a unit: its neighbours' decisions in the iteration before (GO, section 3.3).

Dimension letters: ``B`` samples, ``U`` units, ``K`` choices of a unit.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import jraph
from jaxtyping import Array, Bool, Float, Int

from go_rl.policy.config import MAX_CHIPS
from go_rl.policy.encoder.graph_arrays import edges, node_array

LARGEST = 4.0
"""Features of devices are cut here."""
SEEN_DEVICES, SEEN_LEVELS = 4, 3
"""Features of `seen_devices` and `seen_levels`."""


def highest_before(graph: jraph.GraphsTuple, columns: Float[Array, "U B"]) -> Float[Array, "U B"]:
    """Return the highest number of each unit's producers; not finite where there are none."""
    senders, receivers = edges(graph)
    return jraph.segment_max(columns[senders], receivers, len(columns))


def highest_after(graph: jraph.GraphsTuple, columns: Float[Array, "U B"]) -> Float[Array, "U B"]:
    """Return the highest number of each unit's consumers; not finite where there are none."""
    senders, receivers = edges(graph)
    return jraph.segment_max(columns[receivers], senders, len(columns))


def _finite(values: Float[Array, "U B"], edge: Float[Array, "U B"], other: float) -> Array:
    """``values`` where there is an ``edge``, else ``other``."""
    return jnp.where(jnp.isfinite(edge), values, other)


def seen_chips(
    graph: jraph.GraphsTuple, chip: Int[Array, "B U"], num_devices: Int[Array, ""]
) -> Float[Array, "B U 6"]:
    """Return, for each node: its chip, the loads of that chip and its neighbours against the mean,
    and the room towards producers and consumers."""
    share, count = node_array(graph, "share"), num_devices.astype(jnp.float32)
    row = jnp.arange(len(chip))[:, None]
    load = jnp.zeros((len(chip), MAX_CHIPS + 2)).at[row, chip + 1].add(share * count)
    own, left, right = (jnp.take_along_axis(load, chip + i, axis=1) - 1.0 for i in (1, 0, 2))
    at = chip.T.astype(jnp.float32)
    last, first = highest_before(graph, at), -highest_after(graph, -at)
    below, above = _finite(at - last, last, 2.0).T, _finite(first - at, first, 2.0).T
    seen = jnp.stack([(chip + 0.5) / count, own, left, right, below, above], axis=-1)
    return jnp.clip(seen, -4.0, 4.0)


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
    count = exists.astype(jnp.float32).sum()
    load = jnp.zeros((batch, width)).at[row, device].add(share) * count - 1.0
    senders, receivers = edges(graph)
    there = jax.nn.one_hot(device, width)
    by_unit = jnp.swapaxes(there, 0, 1).reshape(units, batch * width)

    def neighbours(of: Array, others: Array) -> Array:
        # One row an edge: a row of all samples is added at once.
        total = jraph.segment_sum(by_unit[others], of, units)
        degree = jnp.zeros(units).at[of].add(1.0)
        share = total / jnp.maximum(degree, 1.0)[:, None]
        return jnp.swapaxes(share.reshape(units, batch, width), 0, 1)

    columns = [
        there,
        jnp.broadcast_to(jnp.clip(load, -LARGEST, LARGEST)[:, None], (batch, units, width)),
        neighbours(receivers, senders),
        neighbours(senders, receivers),
    ]
    return jnp.stack(columns, axis=-1)


def seen_levels(
    graph: jraph.GraphsTuple, level: Float[Array, "B U"] | None
) -> Float[Array, "#B U 3"]:
    """Return, for each unit: its level in 0 to 1, and how far the highest of its producers and of
    its consumers lie above it, 0 where there are none; zeros without decisions."""
    if level is None:
        return jnp.zeros((1, len(node_array(graph, "share")), SEEN_LEVELS))
    columns = level.T
    before, after = highest_before(graph, columns), highest_after(graph, columns)
    above = [_finite(highest - columns, highest, 0.0) for highest in (before, after)]
    return jnp.swapaxes(jnp.stack([columns - 0.5, *above], axis=-1), 0, 1)
