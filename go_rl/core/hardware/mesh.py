"""Meshes and tori: the neighbour of each device on the way to each other one.

A tensor is routed dimension by dimension, the first dimension first (dimension-ordered routing;
Dally, Seitz, "Deadlock-free message routing in multiprocessor interconnection networks", IEEE
Transactions on Computers 1987), on a torus the shorter way round, upwards where both are equal.
``D`` devices, numbered row by row: the last coordinate counts first. ``A`` dimensions.
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple

import numpy as np
from jaxtyping import Int64


class MeshRoutes(NamedTuple):
    """Routes between all pairs of devices."""

    hop: Int64[np.ndarray, "D D"]
    """[D, D] neighbour that the first device sends to when the second is the destination; itself
    on the diagonal."""
    hops: Int64[np.ndarray, "D D"]
    """[D, D] links on the route."""
    port: Int64[np.ndarray, "D D"]
    """[D, D] the first device's outgoing link to that neighbour, 0 to ``ports`` - 1."""
    ports: int
    """Outgoing links of a device: two a dimension, those included that a border lacks."""


def mesh_routes(shape: tuple[int, ...], torus: bool) -> MeshRoutes:
    """Return the routes on a mesh of ``shape`` [A], or on a torus."""
    devices, size = prod(shape), np.array(shape)[:, None, None]
    place = np.stack(np.unravel_index(np.arange(devices), shape))
    ahead = place[:, None, :] - place[:, :, None]
    if torus:
        ahead = ahead % size
        ahead = np.where(2 * ahead > size, ahead - size, ahead)
    axis = (ahead != 0).argmax(axis=0)
    step = np.sign(np.take_along_axis(ahead, axis[None], axis=0)[0])
    here = np.broadcast_to(np.arange(devices)[:, None], axis.shape)
    stride = np.array([prod(shape[a + 1 :]) for a in range(len(shape))])
    old = place[axis, here]
    new = (old + step) % np.array(shape)[axis]
    hop = here + (new - old) * stride[axis]
    return MeshRoutes(hop, np.abs(ahead).sum(axis=0), 2 * axis + (step < 0), 2 * len(shape))
