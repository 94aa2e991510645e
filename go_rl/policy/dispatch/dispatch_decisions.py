"""Sequential dispatch as plans."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np
from jaxtyping import Float32, Int16

from go_rl.core.decisions import Decisions, Scored
from go_rl.objectives.makespan.methods.composed import expert_placement
from go_rl.objectives.makespan.methods.metis import metis_devices
from go_rl.objectives.makespan.units import MakespanUnits
from go_rl.objectives.makespan.workspace import MakespanWorkspace
from go_rl.policy.dispatch.features import ADVICE, head_weights
from go_rl.policy.dispatch.fusion_head import FusionHead
from go_rl.policy.dispatch.rollout import Dispatched, Dispatcher


class DispatchDecisions:
    """Plans of one problem as a function of the weights of the heads."""

    def __init__(self, workspace: MakespanWorkspace, units: MakespanUnits) -> None:
        self.workspace, self.units = workspace, units

    @cached_property
    def dispatcher(self) -> Dispatcher:
        """Rollouts; where placement is not decided, every unit stays where the reference plan has
        it."""
        workspace, units = self.workspace, self.units
        problem = workspace.problem
        room = np.full(workspace.num_devices, np.inf)
        if problem.memory:
            room = np.array([device.memory_bytes for device in problem.hardware.devices])
        if "placement" not in problem.decisions:
            home = _of_units(units, workspace.reference.device)[0]
            elsewhere = np.arange(workspace.num_devices)[:, None] != home
            units = replace(units, seconds=np.where(elsewhere, np.inf, units.seconds))
        return Dispatcher(units, room, _advice(workspace, units))

    @cached_property
    def fusion_head(self) -> FusionHead:
        """Head that decides what is fused."""
        return FusionHead(self.workspace, self.units)

    def decide(self, deviations: Float32[np.ndarray, "B W"]) -> Decisions:
        """Return the plans of [B, W] weights, given as in `head_weights`: devices, the order of
        selection as priorities, kernels; what the problem does not decide keeps its default."""
        weights = head_weights(deviations)
        found = self.dispatcher.roll_out(weights)
        decisions, count = self.workspace.problem.decisions, len(found.device)
        device = np.repeat(self.workspace.reference.device, count, axis=0)
        if "placement" in decisions:
            device = self.units.nodes_of(found.device)
        priority = self._priority(found) if "schedule" in decisions else None
        fusion = None
        if "fusion" in decisions:
            fusion = self.fusion_head.priorities(weights.fuse, found)
        return self.workspace.decisions(device, priority, fusion)

    def evaluate(self, deviations: Float32[np.ndarray, "B W"]) -> Scored:
        """Return the plans of `decide`, replayed."""
        return self.workspace.evaluate(self.decide(deviations))

    def _priority(self, found: Dispatched) -> np.ndarray:
        """[B, N] scheduling priorities: the units in the order of selection."""
        place = np.zeros(found.order.shape, np.int64)
        turns = np.arange(self.units.num_units, 0, -1)
        np.put_along_axis(place, found.order.astype(np.int64), turns[None], axis=1)
        return self.units.nodes_of(place)


def _advice(workspace: MakespanWorkspace, units: MakespanUnits) -> Int16[np.ndarray, "A U"]:
    """[ADVICE, U] devices of placements made beforehand; where none is decided, the reference's."""
    if "placement" not in workspace.problem.decisions:
        return np.repeat(_of_units(units, workspace.reference.device), ADVICE, axis=0)
    placed = np.stack([expert_placement(workspace), metis_devices(workspace, 0)])
    return _of_units(units, workspace.decisions(placed).device)


def _of_units(units: MakespanUnits, device: np.ndarray) -> Int16[np.ndarray, "B U"]:
    """[B, U] device of the most expensive node of each unit."""
    held = np.flatnonzero(units.unit_of >= 0)
    found = np.zeros((len(device), units.num_units), np.int16)
    found[:, units.unit_of[held]] = device[:, held]
    return found
