"""A human expert's split, where one is given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from go_rl.core import Budget, NodeId, Plan, Problem, Progress, SearchError
from go_rl.core.decisions import Decisions
from go_rl.objectives.common.incumbent import Incumbent, finish_plan
from go_rl.objectives.kits import kit_of
from go_rl.objectives.ring.workspace import RingWorkspace


@dataclass(frozen=True)
class Expert:
    """`Optimizer`: prices the given split; on a ring, the solver repairs it first."""

    split: Mapping[NodeId, int]
    """Device of each node by name."""
    name: str = "expert"

    def optimize(self, problem: Problem, budget: Budget, seed: int) -> Plan:
        """Return the expert's plan; a `SearchError` names a node without device."""
        progress = Progress(budget)
        device = np.zeros(problem.graph.num_nodes, np.int16)
        for i, node in enumerate(problem.graph.names):
            if node not in self.split:
                raise SearchError(f"expert split: node {node!r} has no device")
            chosen = self.split[node]
            if not 0 <= chosen < problem.hardware.num_devices:
                raise SearchError(
                    f"expert split: node {node!r} is on device {chosen}; "
                    f"devices are 0..{problem.hardware.num_devices - 1}"
                )
            device[i] = chosen
        workspace = kit_of(problem).workspace(problem)
        incumbent = Incumbent(workspace, progress)
        if isinstance(workspace, RingWorkspace):
            incumbent.offer(*workspace.repair(device, seed))
        else:
            decisions = Decisions(device[None])
            incumbent.offer(decisions, workspace.detail(decisions))
        return finish_plan(workspace, incumbent, self.name, seed, progress)
