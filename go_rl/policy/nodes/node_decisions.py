"""GO's node decisions as plans: what was chosen for a unit holds for its nodes, nothing else is
decided. No scheduler moves anything, and no reference order is asked."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from jaxtyping import Int32, Int64

from go_rl.core.decisions import Decisions
from go_rl.objectives.makespan.choices import softly_placed
from go_rl.objectives.makespan.units import MakespanUnits
from go_rl.objectives.makespan.workspace import MakespanWorkspace
from go_rl.policy.nodes.node_decoder import NodeActions
from go_rl.policy.nodes.node_options import deciding_nodes


def node_decisions(
    workspace: MakespanWorkspace, units: MakespanUnits, actions: Mapping[str, NodeActions]
) -> Decisions:
    """Return the plans of [B] decisions; a decision without any keeps its default.

    A node that cannot run where its unit was put goes to the next device that can run it.
    """
    rows = {name: _nodes(units, drawn) for name, drawn in actions.items()}
    count = len(next(iter(rows.values())))
    device = np.repeat(workspace.reference.device, count, axis=0)
    if "placement" in rows:
        led = rows["placement"][:, deciding_nodes(workspace, units)]
        device = softly_placed(workspace.choices, led)
    return workspace.decisions(device, rows.get("schedule"), rows.get("fusion"))


def reference_choices(workspace: MakespanWorkspace, units: MakespanUnits) -> Int64[np.ndarray, "U"]:
    """Return the device of each unit in the reference plan: that of its last node."""
    held = np.flatnonzero(units.unit_of >= 0)
    found = np.zeros(units.num_units, np.int64)
    found[units.unit_of[held]] = workspace.reference.device[0, held]
    return found


def padded_choices(choices: np.ndarray, rows: int) -> Int32[np.ndarray, "U"]:
    """Return choices of units for ``rows`` rows, 0 beyond the units."""
    found = np.zeros(rows, np.int32)
    found[: len(choices)] = choices
    return found


def _nodes(units: MakespanUnits, drawn: NodeActions) -> Int64[np.ndarray, "B N"]:
    last = np.asarray(drawn.chosen)[:, -1, : units.num_units].astype(np.int64)
    return units.nodes_of(last)
