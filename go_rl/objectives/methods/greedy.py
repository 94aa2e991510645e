"""`Greedy`: the compiler heuristic of every objective but makespan."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from go_rl.core import Budget, Evaluation, Plan, Problem, Progress, SearchError
from go_rl.core.decisions import Decisions
from go_rl.objectives.common.incumbent import Incumbent, finish_plan
from go_rl.objectives.kits import kit_of
from go_rl.objectives.ring.workspace import Repaired


@runtime_checkable
class HasHeuristic(Protocol):
    """A workspace with a compiler heuristic."""

    def greedy(self) -> Iterator[Repaired | tuple[Decisions | None, Evaluation]]:
        """Yield the heuristic's plans, the last one of use."""
        ...


@dataclass(frozen=True)
class Greedy:
    """`Optimizer`: the reference of every improvement figure; prices a handful of plans."""

    name: str = "greedy"

    def optimize(self, problem: Problem, budget: Budget, seed: int) -> Plan:
        """Return the heuristic's plan; see `go_rl.core.Optimizer`."""
        workspace = kit_of(problem).workspace(problem)
        if not isinstance(workspace, HasHeuristic):
            raise SearchError(f"greedy cannot work on objective {problem.objective}")
        progress = Progress(budget)
        incumbent = Incumbent(workspace, progress)
        for found in workspace.greedy():
            fidelity = found.fidelity if isinstance(found, Repaired) else None
            incumbent.offer(found[0], found[1], fidelity)
        return finish_plan(workspace, incumbent, self.name, seed, progress, workspace.bound)
