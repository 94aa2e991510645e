"""Features of a choice for the heads of sequential dispatch; columns in the order that
`go_rl.policy.dispatch.observations` fills them.

Seconds are shown as log(1 + seconds / mean seconds of a unit), differences against the best choice
of the moment.
"""

from __future__ import annotations

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
)
"""Features of a unit on a device."""
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
