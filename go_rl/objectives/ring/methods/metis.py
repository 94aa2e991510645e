"""METIS on a ring: parts numbered by their mean place in topological order, repaired by FIX."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int16

from go_rl.core import Budget, Plan, Problem, Progress
from go_rl.objectives.common.incumbent import Incumbent, finish_plan
from go_rl.objectives.common.metis import TRIES, in_order, partition
from go_rl.objectives.ring.workspace import RingWorkspace, ring_workspace

LARGEST = 10_000
"""Work and traffic are scaled so that their largest value is this."""


@dataclass(frozen=True)
class Metis:
    """`Optimizer`: METIS parts, sorted along the ring and repaired; a sample is one seed."""

    name: str = "metis"

    def optimize(self, problem: Problem, budget: Budget, seed: int) -> Plan:
        """Return the best of a few seeds; see `go_rl.core.Optimizer`."""
        workspace, progress = ring_workspace(problem), Progress(budget)
        incumbent = Incumbent(workspace, progress)
        for attempt in range(TRIES):
            if attempt and (progress.spent or incumbent.decisions is None):
                break
            proposal = _parts(workspace, seed + attempt)
            incumbent.offer(*workspace.repair(proposal, seed + attempt))
        return finish_plan(workspace, incumbent, self.name, seed, progress)


def _parts(workspace: RingWorkspace, seed: int) -> Int16[np.ndarray, "N"]:
    units, chips = workspace.units, workspace.chips
    count = units.num_units
    if count <= 1 or chips == 1:
        return workspace.nodes_of(np.zeros(count, np.int32))
    uses = np.diff(units.use_ptr)
    ends = np.stack([np.repeat(units.tensor_source, uses), units.user]).astype(np.int64)
    traffic = np.repeat(units.tensor_seconds, uses)
    part = partition(min(chips, count), units.work, ends, traffic, _scaled, seed)
    return workspace.nodes_of(in_order(part, np.arange(count), chips)[units.unit_of])


def _scaled(values: Float64[np.ndarray, "X"]) -> Float64[np.ndarray, "X"]:
    return values / (values.max(initial=0.0) or 1.0) * LARGEST
