"""Greedy fusion as XLA does it: whatever may join its consumers' kernel does, results first.

XLA's instruction fusion visits the operators from the results backwards and merges each producer
into its consumers where that is legal; here no producer is computed twice.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from go_rl.core import Budget, Plan, Problem, Progress
from go_rl.core.decisions import Decisions
from go_rl.objectives.incumbent import best_of
from go_rl.objectives.makespan.workspace import MakespanWorkspace, makespan_workspace


@dataclass(frozen=True)
class GreedyFusion:
    """`Optimizer`: the default placement in topological order, everything fused that may be."""

    name: str = "fusion-greedy"

    def optimize(self, problem: Problem, budget: Budget, seed: int) -> Plan:
        """Return that one plan, which without the decision fusion is the default; see
        `go_rl.core.Optimizer`."""
        workspace = makespan_workspace(problem)
        plans = (greedily_fused(workspace),)
        return best_of(workspace, plans, self.name, seed, Progress(budget))


def greedily_fused(workspace: MakespanWorkspace) -> Decisions:
    """Return the default plan with kernels by equal fusion priority."""
    device = workspace.reference.device
    return workspace.decisions(device, None, np.ones(device.shape, np.int64))
