"""`Greedy`: the compiler heuristic of every objective but makespan."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from go_rl.core import Budget, Objective, Plan, Problem, Progress, SearchError, Status
from go_rl.core.evaluation import failed
from go_rl.core.plan import plan_for
from go_rl.objectives.host.latency_bounds import latency_bound
from go_rl.objectives.host.latency_greedy import greedy_latency
from go_rl.objectives.host.max_load_bounds import max_load_bound
from go_rl.objectives.host.max_load_greedy import greedy_max_load
from go_rl.objectives.ring.greedy import greedy_ring_plan
from go_rl.simulate import pricer


@dataclass(frozen=True)
class Greedy:
    """`Optimizer`: the baseline of every improvement figure; prices a handful of plans."""

    name: str = "greedy"

    def optimize(self, problem: Problem, budget: Budget, seed: int) -> Plan:
        """Return the heuristic's plan; see `go_rl.core.Optimizer`."""
        progress = Progress(budget)
        if problem.objective is Objective.RING:
            return greedy_ring_plan(problem, progress, self.name, seed)
        latency = problem.objective is Objective.LATENCY
        try:
            device = (greedy_latency if latency else greedy_max_load)(problem).astype(np.int16)
            evaluation = pricer(problem).evaluate(device)
        except SearchError as error:
            device = np.zeros(problem.graph.num_nodes, np.int16)
            evaluation = failed(Status.GAVE_UP, problem.hardware.num_chips, str(error))
        progress.record(evaluation.seconds_per_step)
        bound = (latency_bound if latency else max_load_bound)(problem)
        return plan_for(
            problem,
            device=device,
            replicas={},
            evaluation=evaluation,
            bound=min(bound, evaluation.seconds_per_step),
            optimizer=self.name,
            seed=seed,
            samples=progress.samples,
            wall_seconds=progress.wall_seconds,
            curve=tuple(progress.curve),
        )
