"""Which devices each node of a makespan problem may have, its colocation class and pins included.

A class is named by its `StepWorkspace.class_leader`, whose device `StepWorkspace.decisions` gives
to all of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int, Int16, Int64

from go_rl.core import FREE
from go_rl.search.step_workspace import StepWorkspace

LEVELS = 20
"""Priorities that sampled plans tell apart, 0 to 19, as GO does."""
NOWHERE = -1


@dataclass(frozen=True, eq=False)
class Choices:
    """Devices that nodes may have."""

    leader: Int64[np.ndarray, "N"]
    """[N] `StepWorkspace.class_leader` of each node."""
    allowed: Bool[np.ndarray, "D N"]
    """[D, N] the device can run the whole class and no pin speaks against it."""
    fed: Bool[np.ndarray, "N"]
    """[N] inputs and constants: their results are on every device from the start."""


def choices(workspace: StepWorkspace) -> Choices:
    """Return what each node may have."""
    leader, pinned = workspace.class_leader, workspace.pinned
    unable = np.zeros(workspace.able.shape, np.bool_)
    for row, able in zip(unable, workspace.able, strict=True):
        row[leader[~able]] = True
    devices = np.arange(workspace.num_devices)[:, None]
    allowed = ~unable[:, leader] & ((pinned == FREE) | (pinned == devices))
    return Choices(leader, allowed, workspace.pricer.arrays.fed)


def softly_placed(
    options: Choices, device: Int[np.ndarray, "B N"], fallback: int = 0
) -> Int16[np.ndarray, "B N"]:
    """Return [B, N] devices: a node that cannot run where it was put goes to the next device, in a
    circle, that can run it (TensorFlow's soft placement); ``fallback`` if there is none."""
    devices = len(options.allowed)
    nodes = np.arange(device.shape[1])
    found = np.full(device.shape, fallback, np.int16)
    open_ = np.ones(device.shape, np.bool_)
    for step in range(devices):
        there = (device + step) % devices
        fits = open_ & options.allowed[there, nodes]
        found[fits] = there[fits]
        open_ &= ~fits
    return found


def beside_readers(
    workspace: StepWorkspace, device: Int[np.ndarray, "N"]
) -> Int16[np.ndarray, "N"]:
    """Return [N] devices with inputs and constants put where the first of their readers is."""
    graph, fed = workspace.problem.graph, workspace.pricer.arrays.fed
    placed = device.astype(np.int16)
    offsets, edges = graph.successors
    for node in np.flatnonzero(fed & (np.diff(offsets) > 0)):
        readers = graph.receivers[edges[offsets[node] : offsets[node + 1]]]
        placed[node] = placed[readers.min()]
    return placed
