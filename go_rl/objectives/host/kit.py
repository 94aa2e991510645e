"""`MAX_LOAD_KIT` and `LATENCY_KIT`: devices that exchange through host memory, two objectives."""

from __future__ import annotations

from go_rl.core import Objective
from go_rl.objectives.common.kit import ObjectiveKit, SearchKit
from go_rl.objectives.host.workspace import host_workspace


def _max_load() -> SearchKit:
    from go_rl.objectives.host.search import MAX_LOAD_SEARCH

    return MAX_LOAD_SEARCH


def _latency() -> SearchKit:
    from go_rl.objectives.host.search import LATENCY_SEARCH

    return LATENCY_SEARCH


MAX_LOAD_KIT = ObjectiveKit(Objective.MAX_LOAD, host_workspace, _max_load)
"""Kit of the largest device load."""
LATENCY_KIT = ObjectiveKit(Objective.LATENCY, host_workspace, _latency)
"""Kit of the time of one sample."""
