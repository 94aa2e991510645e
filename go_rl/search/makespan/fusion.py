"""Greedy fusion as XLA does it: whatever may join its consumers' kernel does, results first.

XLA's instruction fusion visits the operators from the results backwards and merges each producer
into its consumers where that is legal; here no producer is computed twice.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from go_rl.core import Budget, Plan, Problem, Progress
from go_rl.objectives.makespan.workspace import StepIncumbent, StepWorkspace, step_workspace
from go_rl.simulate.makespan.pricing import Decisions


@dataclass(frozen=True)
class StepGreedyFusion:
    """`Optimizer`: the default placement in topological order, everything fused that may be."""

    name: str = "fusion-greedy"

    def optimize(self, problem: Problem, budget: Budget, seed: int) -> Plan:
        """Return that one plan, which without the task fusion is the default; see
        `go_rl.core.Optimizer`."""
        workspace, progress = step_workspace(problem), Progress(budget)
        incumbent = StepIncumbent(workspace, progress)
        if not incumbent.hopeless:
            incumbent.offer(workspace.price(greedily_fused(workspace)))
        return workspace.plan(incumbent, self.name, seed, progress)


def greedily_fused(workspace: StepWorkspace) -> Decisions:
    """Return the default plan with kernels by equal fusion priority."""
    device = workspace.default.device
    return workspace.decisions(device, None, np.ones(device.shape, np.int64))
