"""`Objective`: the value that a plan minimises, and its traits outside its own room."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from go_rl.core.hardware import Topology

DECISIONS = ("placement", "schedule", "fusion")
"""Decisions of a plan for the makespan objective."""


class Objective(enum.StrEnum):
    """Value that a plan minimises, in seconds; smaller is better."""

    RING = "ring"
    """T_max of a pipeline on a ring of chips under the multi-chip-module rules."""
    MAX_LOAD = "max-load"
    """Largest device load, dnn-partitioning's throughput objective (NeurIPS 2020)."""
    LATENCY = "latency"
    """Time of one sample, dnn-partitioning's latency objective."""
    MAKESPAN = "makespan"
    """Time of one iteration on fully connected devices: placement, schedule and fusion,
    replayed."""

    @property
    def traits(self) -> ObjectiveTraits:
        """Traits of the objective outside its own room."""
        return TRAITS[self]


@dataclass(frozen=True)
class ObjectiveTraits:
    """Traits of an objective outside its own room; a row of `TRAITS`."""

    device: str
    """Word for a device."""
    decides: tuple[str, ...] = DECISIONS[:1]
    """Decisions that a problem may ask for."""
    has_rules: bool = False
    """Whether a rule set restricts which devices may follow one another."""
    stages: bool = False
    """Whether devices are stages of a pipeline, whose effective number is told."""
    topology: Topology | None = None
    """Links that the hardware must have; None: any."""
    topology_hint: tuple[str, str] = ("", "")
    """Words of a refusal of other links: the hardware that is needed, and what to choose."""


TRAITS = {
    Objective.RING: ObjectiveTraits(
        "chip", has_rules=True, stages=True, topology=Topology.RING,
        topology_hint=("hardware with ring links", "ringN or --objective max-load"),
    ),
    Objective.MAX_LOAD: ObjectiveTraits("device"),
    Objective.LATENCY: ObjectiveTraits("device"),
    Objective.MAKESPAN: ObjectiveTraits(
        "device", decides=DECISIONS, topology=Topology.FULL,
        topology_hint=("fully connected devices", "p100x4, a100x8 or another xN"),
    ),
}  # fmt: skip
"""Traits by objective: an objective that is added is a row here and a folder in
`go_rl.objectives`."""
