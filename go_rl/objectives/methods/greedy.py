"""`Greedy`: the compiler heuristic of every objective but makespan."""

from __future__ import annotations

from dataclasses import dataclass

from go_rl.core import Budget, Objective, Plan, Problem, Progress
from go_rl.objectives.common.incumbent import Incumbent, finish_plan
from go_rl.objectives.host.workspace import host_workspace
from go_rl.objectives.ring.workspace import Repaired, ring_workspace


@dataclass(frozen=True)
class Greedy:
    """`Optimizer`: the reference of every improvement figure; prices a handful of plans."""

    name: str = "greedy"

    def optimize(self, problem: Problem, budget: Budget, seed: int) -> Plan:
        """Return the heuristic's plan; see `go_rl.core.Optimizer`."""
        ring = problem.objective is Objective.RING
        workspace = ring_workspace(problem) if ring else host_workspace(problem)
        progress = Progress(budget)
        incumbent = Incumbent(workspace, progress)
        for found in workspace.greedy():
            fidelity = found.fidelity if isinstance(found, Repaired) else None
            incumbent.offer(found[0], found[1], fidelity)
        return finish_plan(workspace, incumbent, self.name, seed, progress, workspace.bound)
