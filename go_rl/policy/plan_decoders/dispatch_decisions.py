"""Sequential dispatch as plans, and plans as what a dispatcher would have had to choose."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from go_rl.core.decisions import Decisions
from go_rl.objectives.makespan.units import MakespanUnits
from go_rl.objectives.makespan.workspace import MakespanWorkspace
from go_rl.policy.decoders.dispatch_decoder import DispatchChoices
from go_rl.policy.dispatch.rollout import Dispatched, Dispatcher

STEPS = 512
"""Most choices of a plan that teach, evenly spread over it."""


def dispatcher(workspace: MakespanWorkspace, units: MakespanUnits) -> Dispatcher:
    """Return the rollouts of a problem; where placement is not decided, every unit stays where the
    reference plan has it."""
    problem = workspace.problem
    room = np.full(workspace.num_devices, np.inf)
    if problem.memory:
        room = np.array([chip.memory_bytes for chip in problem.hardware.chips])
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


def dispatched(workspace: MakespanWorkspace, units: MakespanUnits, plans: Decisions) -> Dispatched:
    """Return plans as a dispatcher would make them: the device of each unit's most expensive node,
    units in the order in which the replay starts them."""
    device = _of_units(units, plans.device)
    order = np.stack([_started(workspace, units, plans, row) for row in range(len(device))])
    return Dispatched(device, order)


def recorded_choices(
    dispatcher: Dispatcher, plans: Dispatched, rows: int, offset: int = 0, astray: float = 0.0
) -> dict[str, DispatchChoices]:
    """Return the choices along [B] plans, by decision.

    Args:
        dispatcher: of the problem.
        plans: what was selected and placed.
        rows: units with padding; the arrays have as many choices, at most `STEPS`.
        offset: shifts which choices are recorded.
        astray: see `Dispatcher.follow`.
    """
    found = dispatcher.follow(plans, min(rows, STEPS), offset, astray)
    unit = np.where(found.possible, found.unit[..., None], -1)
    seen: dict[str, Any] = {
        "schedule": (found.select_seen, found.candidates, found.selected),
        "placement": (found.place_seen, unit, found.placed),
    }
    return {decision: DispatchChoices(*arrays) for decision, arrays in seen.items()}


def _of_units(units: MakespanUnits, device: np.ndarray) -> np.ndarray:
    """[B, U] device of the most expensive node of each unit."""
    held = np.flatnonzero(units.unit_of >= 0)
    found = np.zeros((len(device), units.num_units), np.int16)
    found[:, units.unit_of[held]] = device[:, held]
    return found


def _started(
    workspace: MakespanWorkspace, units: MakespanUnits, plans: Decisions, row: int
) -> np.ndarray:
    """[U] units by when their first kernel starts, in a topological order."""
    _, _, trace = workspace.pricer.trace(plans, row)
    nodes = workspace.num_nodes
    began = np.full(nodes, np.inf)
    kernels = trace.job < nodes
    np.minimum.at(began, trace.job[kernels], trace.start[kernels])
    if plans.kernel_leader is not None:
        began = began[plans.kernel_leader[row]]
    held = units.unit_of >= 0
    start = np.full(units.num_units, np.inf)
    np.minimum.at(start, units.unit_of[held], began[held])
    u = units.units
    for unit in range(units.num_units):  # units are numbered in a topological order
        some = u.pred[u.pred_ptr[unit] : u.pred_ptr[unit + 1]]
        start[unit] = max(start[unit], start[some].max(initial=-np.inf))
    return np.argsort(start, kind="stable").astype(np.int32)
