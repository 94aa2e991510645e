"""Data parallelism: the samples of a batch are spread over the devices of this process, the rest is
copied. Several processes share out problems; see `go_rl.policy.learn.processes`."""

from __future__ import annotations

from typing import TypeVar

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from go_rl.policy.learn.ppo import Batch, Learner

T = TypeVar("T")
AXIS = "samples"


def split_samples(batch: Batch) -> Batch:
    """Return the batch, its samples spread over the devices of this process; with one, unchanged.

    A batch whose samples do not divide by the number of devices is copied to all of them.
    """
    if jax.local_device_count() == 1:
        return batch
    graph, real, num_devices = copied((batch.graph, batch.real, batch.num_devices))
    return Batch(graph, real, num_devices, jax.tree.map(_split, batch.groups))


def on_all_devices(learner: Learner) -> Learner:
    """Return the learner with a copy on every device."""
    return learner if jax.local_device_count() == 1 else copied(learner)


def copied(tree: T) -> T:
    """Return a pytree with a copy of each array on every device."""
    return jax.device_put(tree, NamedSharding(_mesh(), PartitionSpec()))


def _split(array: jax.Array) -> jax.Array:
    spec = (
        PartitionSpec(AXIS) if array.shape[0] % jax.local_device_count() == 0 else PartitionSpec()
    )
    return jax.device_put(array, NamedSharding(_mesh(), spec))


def _mesh() -> Mesh:
    return Mesh(np.array(jax.local_devices()), (AXIS,))
