"""Sequential dispatch as plans."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from go_rl.core.decisions import Decisions
from go_rl.objectives.makespan.units import MakespanUnits
from go_rl.objectives.makespan.workspace import MakespanWorkspace
from go_rl.policy.dispatch.rollout import Dispatched, Dispatcher


def dispatcher(workspace: MakespanWorkspace, units: MakespanUnits) -> Dispatcher:
    """Return the rollouts of a problem; where placement is not decided, every unit stays where the
    reference plan has it."""
    problem = workspace.problem
    room = np.full(workspace.num_devices, np.inf)
    if problem.memory:
        room = np.array([chip.memory_bytes for chip in problem.hardware.devices])
    if "placement" not in problem.decisions:
        home = _of_units(units, workspace.reference.device)[0]
        elsewhere = np.arange(workspace.num_devices)[:, None] != home
        units = replace(units, seconds=np.where(elsewhere, np.inf, units.seconds))
    return Dispatcher(units, room)


def dispatch_decisions(
    workspace: MakespanWorkspace, units: MakespanUnits, found: Dispatched
) -> Decisions:
    """Return the plans of [B] rollouts: devices, the order of selection as priorities, and every
    fusion that is legal; what the problem does not decide keeps its default."""
    decisions, count = workspace.problem.decisions, len(found.device)
    device = np.repeat(workspace.reference.device, count, axis=0)
    if "placement" in decisions:
        device = units.nodes_of(found.device)
    priority = fusion = None
    if "schedule" in decisions:
        place = np.zeros(found.order.shape, np.int64)
        turns = np.arange(units.num_units, 0, -1)
        np.put_along_axis(place, found.order.astype(np.int64), turns[None], axis=1)
        priority = units.nodes_of(place)
    if "fusion" in decisions:
        fusion = np.ones((count, workspace.num_nodes), np.int64)
    return workspace.decisions(device, priority, fusion)


def _of_units(units: MakespanUnits, device: np.ndarray) -> np.ndarray:
    """[B, U] device of the most expensive node of each unit."""
    held = np.flatnonzero(units.unit_of >= 0)
    found = np.zeros((len(device), units.num_units), np.int16)
    found[:, units.unit_of[held]] = device[:, held]
    return found
