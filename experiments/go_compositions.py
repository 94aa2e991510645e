"""What a compiler stack does today for placement, schedule and fusion, one pass after the other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from go_learners import Search, restricted

from go_rl.core import Budget, Plan, Problem, Progress
from go_rl.search import StepHeft, StepMetis
from go_rl.search.step_choices import choices, softly_placed
from go_rl.search.step_expert import expert_devices
from go_rl.search.step_heft import rank_priorities, upward_rank
from go_rl.search.step_workspace import step_workspace
from go_rl.simulate.makespan import Decisions


@dataclass(frozen=True)
class Compiler:
    """`Optimizer`: the one plan of the expert's placement, HEFT's order and greedy fusion, as far
    as these tasks are asked for."""

    name: str = "compiler"

    def optimize(self, problem: Problem, budget: Budget, seed: int) -> Plan:
        """Return that plan; see `go_rl.core.Optimizer`."""
        search = Search(problem, Progress(budget))
        search.offer(composition(problem, expert(problem), True, True))
        return search.plan(self.name, seed)


@dataclass(frozen=True)
class Composed:
    """`Optimizer`: the best of all compositions of a placement (default, expert, METIS, HEFT), an
    order (topological, HEFT's ranks) and a fusion (none, greedy)."""

    name: str = "composed"

    def optimize(self, problem: Problem, budget: Budget, seed: int) -> Plan:
        """Return that plan; see `go_rl.core.Optimizer`."""
        search = Search(problem, Progress(budget))
        for device in placements(problem, seed):
            for ordered in (False, True) if "schedule" in problem.tasks else (False,):
                for fused in (False, True) if "fusion" in problem.tasks else (False,):
                    if not search.progress.spent:
                        search.offer(composition(problem, device, ordered, fused))
        return search.plan(self.name, seed)


def expert(problem: Problem) -> np.ndarray:
    """Return [N] devices of the expert, or the default's where nothing is to be placed."""
    workspace = step_workspace(problem)
    if "placement" not in problem.tasks:
        return workspace.default.device[0]
    return softly_placed(choices(workspace), expert_devices(workspace)[None])[0]


def placements(problem: Problem, seed: int) -> list[np.ndarray]:
    """Return [N] devices of every method that places."""
    found = [step_workspace(problem).default.device[0]]
    if "placement" not in problem.tasks:
        return found
    placing = restricted(problem, ("placement", "schedule"))
    others = (StepMetis(), StepHeft())
    plans = [other.optimize(placing, Budget(samples=2), seed) for other in others]
    return [*found, expert(problem), *(plan.device for plan in plans)]


def composition(problem: Problem, device: np.ndarray, ordered: bool, fused: bool) -> Decisions:
    """Return a plan on devices [N]; a task that is not asked for keeps its default.

    Ranks are those of HEFT for this very placement: tensors that stay on a device cost nothing.
    """
    workspace, rows = step_workspace(problem), device[None]
    priority = None
    if ordered and "schedule" in problem.tasks:
        pinned = step_workspace(restricted(problem, ("schedule",), device))
        priority = rank_priorities(upward_rank(pinned))[None]
    fusion = np.ones(rows.shape, np.int64) if fused else None
    return workspace.decisions(rows, priority, fusion)
