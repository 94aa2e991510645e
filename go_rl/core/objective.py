"""`Objective`: the value that a plan minimises, and its traits outside its own room."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from go_rl.core.hardware.hardware import MAX_DEVICES
from go_rl.core.hardware.links import MESHES, Topology

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

    value_name: str
    """Name of the value, such as ``T_max``."""
    hardware: str
    """Hardware when the user names none and the model file brings none."""
    device: str = "device"
    """Word for a device."""
    decides: tuple[str, ...] = DECISIONS[:1]
    """Decisions that a problem may ask for."""
    has_rules: bool = False
    """Whether a rule set restricts which devices may follow one another."""
    is_replayed: bool = False
    """Whether a plan is replayed in time; inputs and constants then run nowhere."""
    is_priced_whole: bool = False
    """Whether pricing a plan finds every rule that moving an operator may break."""
    is_pipeline: bool = False
    """Whether devices are stages of a pipeline: for inference only, links are priced as devices
    are, weights too large for a device are streamed, and the effective number of devices is told.
    """
    topologies: tuple[Topology, ...] = ()
    """Links that the hardware may have; empty: any of one class, and no meshes."""
    topology_hint: tuple[str, str] = ("", "")
    """Words of a refusal of other links: the hardware that is needed, and what to choose."""
    most_devices: int = 64
    """Largest number of devices; 64 where sets of them are bits of one word."""

    @property
    def decides_several(self) -> bool:
        """Whether a problem may ask for more than a placement."""
        return len(self.decides) > 1


TRAITS = {
    Objective.RING: ObjectiveTraits(
        "T_max", "ring36", "chip", has_rules=True, is_pipeline=True, topologies=(Topology.RING,),
        topology_hint=("hardware with ring links", "ringN or --objective max-load"),
    ),
    Objective.MAX_LOAD: ObjectiveTraits("max load", "ring36", is_priced_whole=True),
    Objective.LATENCY: ObjectiveTraits("makespan", "ring36"),
    Objective.MAKESPAN: ObjectiveTraits(
        "makespan", "p100x4", decides=DECISIONS, is_replayed=True,
        is_priced_whole=True, topologies=(Topology.FULL, *MESHES), most_devices=MAX_DEVICES,
        topology_hint=("fully connected devices or a mesh", "p100x4, a100x8 or another xN"),
    ),
}  # fmt: skip
"""Traits by objective: an objective that is added is a row here, one of
`go_rl.objectives.kits.KITS`, and a folder in `go_rl.objectives`."""
OF_LINKS = {links: objective for objective, each in TRAITS.items() for links in each.topologies}
"""Objective that needs hardware with these links."""
