"""The framework's own placement: one device if the model fits, else layers round-robin."""

from __future__ import annotations

from dataclasses import dataclass

from go_rl.core import Budget, Plan, Problem, Progress
from go_rl.objectives.incumbent import best_of
from go_rl.objectives.makespan.workspace import makespan_workspace


@dataclass(frozen=True)
class DefaultPlacement:
    """`Optimizer`: the default placement, in topological order, nothing fused."""

    name: str = "default"

    def optimize(self, problem: Problem, budget: Budget, seed: int) -> Plan:
        """Return the default plan; see `go_rl.core.Optimizer`."""
        workspace = makespan_workspace(problem)
        return best_of(workspace, (workspace.reference,), self.name, seed, Progress(budget))
