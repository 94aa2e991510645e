"""Devices allowed for each node of a makespan problem, its colocation class and pins included.

A class is named by its `MakespanWorkspace.class_leader`, whose device
`MakespanWorkspace.decisions` gives to all of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int, Int16, Int64

LEVELS = 20
"""Priorities that sampled plans tell apart, 0 to 19, as GO does."""
NOWHERE = -1


@dataclass(frozen=True, eq=False)
class Choices:
    """Devices that nodes may have."""

    leader: Int64[np.ndarray, "N"]
    """[N] `MakespanWorkspace.class_leader` of each node."""
    allowed: Bool[np.ndarray, "D N"]
    """[D, N] the device can run the whole class and no pin speaks against it."""
    fed: Bool[np.ndarray, "N"]
    """[N] inputs and constants: their results are on every device from the start."""


def softly_placed(options: Choices, device: Int[np.ndarray, "B N"]) -> Int16[np.ndarray, "B N"]:
    """Return [B, N] devices: a node that cannot run where it was put goes to the next device, in a
    circle, that can run it (TensorFlow's soft placement); to device 0 if there is none."""
    devices = len(options.allowed)
    nodes = np.arange(device.shape[1])
    found = np.zeros(device.shape, np.int16)
    open_ = np.ones(device.shape, np.bool_)
    for step in range(devices):
        there = (device + step) % devices
        if not open_.any():
            break
        fits = open_ & options.allowed[there, nodes]
        found[fits] = there[fits]
        open_ &= ~fits
    return found
