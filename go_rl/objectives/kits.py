"""`KITS`: the objectives, each with its kit."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from go_rl.core import Objective, Problem
from go_rl.objectives.common.kit import ObjectiveKit
from go_rl.objectives.host.kit import LATENCY_KIT, MAX_LOAD_KIT
from go_rl.objectives.makespan.kit import MAKESPAN_KIT
from go_rl.objectives.ring.kit import RING_KIT

KITS: Mapping[Objective, ObjectiveKit] = MappingProxyType(
    {kit.objective: kit for kit in (RING_KIT, MAX_LOAD_KIT, LATENCY_KIT, MAKESPAN_KIT)}
)
"""Kits by objective."""


def kit_of(problem: Problem) -> ObjectiveKit:
    """Return the kit of a problem's objective."""
    return KITS[problem.objective]
