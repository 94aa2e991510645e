"""The framework's own placement: one device if the model fits, else layers round-robin."""

from __future__ import annotations

from dataclasses import dataclass

from go_rl.core import Budget, Plan, Problem, Progress
from go_rl.objectives.incumbent import Incumbent, finish_plan
from go_rl.objectives.makespan.workspace import makespan_workspace


@dataclass(frozen=True)
class DefaultPlacement:
    """`Optimizer`: the default placement, in topological order, nothing fused."""

    name: str = "default"

    def optimize(self, problem: Problem, budget: Budget, seed: int) -> Plan:
        """Return the default plan; see `go_rl.core.Optimizer`."""
        workspace, progress = makespan_workspace(problem), Progress(budget)
        incumbent = Incumbent(workspace, progress)
        if not incumbent.hopeless:
            incumbent.offer_scored(workspace.evaluate(workspace.reference))
        return finish_plan(workspace, incumbent, self.name, seed, progress)
