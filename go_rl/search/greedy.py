"""`Greedy`: the compiler heuristic of every objective but makespan."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from go_rl.core import Budget, Objective, Plan, Problem, Progress, SearchError, Status
from go_rl.core.decisions import Decisions
from go_rl.objectives.host.latency_bounds import latency_bound
from go_rl.objectives.host.latency_greedy import greedy_latency
from go_rl.objectives.host.max_load_bounds import max_load_bound
from go_rl.objectives.host.max_load_greedy import greedy_max_load
from go_rl.objectives.host.workspace import host_workspace
from go_rl.objectives.incumbent import Incumbent, finish_plan
from go_rl.objectives.ring.workspace import ring_workspace


@dataclass(frozen=True)
class Greedy:
    """`Optimizer`: the reference of every improvement figure; prices a handful of plans."""

    name: str = "greedy"

    def optimize(self, problem: Problem, budget: Budget, seed: int) -> Plan:
        """Return the heuristic's plan; see `go_rl.core.Optimizer`."""
        progress = Progress(budget)
        if problem.objective is Objective.RING:
            ring = ring_workspace(problem)
            incumbent = Incumbent(ring, progress)
            for decisions, evaluation in ring.greedy():
                incumbent.offer(decisions, evaluation)
            return finish_plan(ring, incumbent, self.name, seed, progress)
        workspace, latency = host_workspace(problem), problem.objective is Objective.LATENCY
        incumbent = Incumbent(workspace, progress)
        try:
            device = (greedy_latency if latency else greedy_max_load)(problem).astype(np.int16)
            decisions = Decisions(device[None])
            incumbent.offer(decisions, workspace.detail(decisions))
        except SearchError as error:
            incumbent.offer(None, workspace.failed(Status.GAVE_UP, str(error)))
        bound = (latency_bound if latency else max_load_bound)(problem)
        return finish_plan(workspace, incumbent, self.name, seed, progress, bound)
