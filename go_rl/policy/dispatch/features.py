"""Features of a choice for the three heads of sequential dispatch, and the weights of a list
scheduler; columns in the order that `go_rl.policy.dispatch.observations` and
`go_rl.policy.dispatch.fusion_head` fill them.

Seconds are shown as log(1 + seconds / mean seconds of a unit), differences against the best choice
of the moment.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float32

PLACE_FEATURES = (
    "ends first",
    "end",
    "start",
    "device free",
    "data there",
    "transfer",
    "transfer per compute",
    "share of the data there",
    "main producer there",
    "share of the layer there",
    "layer's last unit there",
    "load against progress",
    "memory in use",
    "distance from an even pipeline by layer",
    "distance from an even pipeline by work",
    "slower than the fastest",
    "consumers' other data there",
    "fills the slack",
    "expert's choice",
    "METIS's choice",
)
"""Features of a unit on a device."""
ADVICE = 2
"""Last columns of `PLACE_FEATURES`: whether a placement made beforehand chose this device."""
SELECT_FEATURES = (
    "upward rank",
    "earliest start",
    "waiting",
    "number",
    "layer",
    "seconds",
    "follows the last unit",
    "backward",
    "slack",
    "main producer's device free",
    "share of the layer begun",
    "consumers set free",
)
"""Features of a unit among those that are ready."""
WINDOW = 16
"""Most ready units that are compared; further ones wait, the lowest upward ranks."""
FUSE_FEATURES = (
    "any",
    "seconds",
    "result",
    "consumers",
    "consumers here",
    "heavy",
    "consumer heavy",
    "consumers in the unit",
    "backward",
    "waiting",
    "load",
    "slack",
    "number",
)
"""Features of a producer that may share a kernel with a consumer, when its unit has its place."""
HEADS = {"schedule": SELECT_FEATURES, "placement": PLACE_FEATURES, "fusion": FUSE_FEATURES}
"""Features by the decision that a head makes."""
LISTED = {
    "schedule": {"upward rank": 20.0, "earliest start": -1.0},
    "placement": {"end": -4.0, "ends first": 1.0},
    "fusion": {"any": 3.0},
}
"""Weights of a list scheduler: earliest finish time by upward rank (HEFT), all that may be is
fused. Others are 0."""
SPREAD = 1.2
"""Standard deviation of a weight before training, unless `SPREADS` has another."""
SPREADS = {
    "schedule": {
        "upward rank": 4.8, "number": 4.8, "layer": 4.8, "earliest start": 0.9, "waiting": 0.6,
    },
    "placement": {
        "distance from an even pipeline by layer": 3.0,
        "distance from an even pipeline by work": 3.0,
        "load against progress": 1.8,
        "expert's choice": 3.0,
        "METIS's choice": 3.0,
    },
    "fusion": {},
}  # fmt: skip
OBEYED = 8.0
"""Deviation with which advice outweighs all else."""
WIDTH = sum(map(len, HEADS.values()))
"""Number of weights of all heads, ``W``."""


class HeadWeights(NamedTuple):
    """Weights of the three heads for ``B`` rollouts."""

    select: Float32[np.ndarray, "B F"]
    place: Float32[np.ndarray, "B G"]
    fuse: Float32[np.ndarray, "B H"]


def head_weights(deviations: Float32[np.ndarray, "B W"]) -> HeadWeights:
    """Return weights of the heads from ``deviations`` [B, W]: distances from a list scheduler, in
    standard deviations of an untrained policy."""
    mean, spread = _untrained()
    weights = mean + spread * np.asarray(deviations, np.float32)
    ends = np.cumsum([len(names) for names in HEADS.values()])[:-1]
    select, place, fuse = (np.ascontiguousarray(part) for part in np.split(weights, ends, axis=1))
    return HeadWeights(select, place, fuse)


def list_schedulers() -> Float32[np.ndarray, "L W"]:
    """Return [1 + ADVICE, W] deviations: a list scheduler, and the same with each of the placements
    made beforehand."""
    end = len(SELECT_FEATURES) + len(PLACE_FEATURES)
    found = np.zeros((1 + ADVICE, WIDTH), np.float32)
    found[np.arange(1, 1 + ADVICE), np.arange(end - ADVICE, end)] = OBEYED
    return found


def _untrained() -> tuple[Float32[np.ndarray, "W"], Float32[np.ndarray, "W"]]:
    """[W] mean and [W] standard deviation of the weights of an untrained policy."""
    mean = [LISTED[head].get(name, 0.0) for head, names in HEADS.items() for name in names]
    wide = [SPREADS[head].get(name, SPREAD) for head, names in HEADS.items() for name in names]
    return np.array(mean, np.float32), np.array(wide, np.float32)
