"""`NodesPlans`: the choices of a node policy are plans as they are.

What was chosen for a unit holds for its nodes, nothing else is decided. No scheduler moves
anything, and no reference order is asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float32, Int32, Int64

from go_rl.core.decisions import Decisions
from go_rl.objectives.makespan.choices import softly_placed
from go_rl.objectives.makespan.units import MakespanUnits
from go_rl.objectives.makespan.workspace import MakespanWorkspace
from go_rl.policy.agent import Options, Start
from go_rl.policy.makespan_plans import MakespanPlans
from go_rl.policy.nodes.node_decoder import NodeActions
from go_rl.policy.nodes.node_options import UnitOptions, deciding_nodes, node_options, unit_leaders
from go_rl.policy.plan_decoder import ProposalArrays


class NodesPlans(MakespanPlans):
    """A makespan problem whose units choose by themselves."""

    kind = "nodes"

    def decisions_of(self, group: str) -> tuple[str, ...]:
        """Return all that the problem asks for."""
        return self.workspace.problem.decisions

    @cached_property
    def options(self) -> dict[str, Float32[np.ndarray, "U _"]]:
        """Options of each unit; see `node_options`."""
        return node_options(self.workspace, self.units, len(self.padded.real))

    @cached_property
    def choices(self) -> Options:
        """Options of each unit, and the unit that decides for it."""
        rows = len(self.padded.real)
        leaders = dict.fromkeys(self.options, np.arange(rows, dtype=np.int32))
        leaders["placement"] = unit_leaders(self.workspace, self.units, rows)
        return {
            name: UnitOptions(jnp.asarray(table), jnp.asarray(leaders[name]))
            for name, table in self.options.items()
        }

    @cached_property
    def reference_start(self) -> Start:
        """The devices of the reference plan."""
        rows = reference_choices(self.workspace, self.units)
        return {"placement": padded_choices(rows, len(self.padded.real))}

    def decisions(self, proposals: ProposalArrays) -> Decisions:
        """Return the choices of the last iteration."""
        return node_decisions(self.workspace, self.units, proposals)


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
