"""The compiler heuristic: topological fill balanced by compute, repaired to be legal."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int16

from go_rl.core import Budget, Objective, Plan, Problem, Progress, SearchError, Status
from go_rl.core.evaluation import failed
from go_rl.core.plan import plan_for
from go_rl.search.latency_bounds import latency_bound
from go_rl.search.latency_greedy import greedy_latency
from go_rl.search.max_load_bounds import max_load_bound
from go_rl.search.max_load_greedy import greedy_max_load
from go_rl.search.ring_workspace import Incumbent, RingWorkspace, ring_workspace, work_share
from go_rl.simulate import pricer

MIXES = (0.0, 0.5, 0.8, 1.0)
"""Shares of weight bytes in what is balanced; tried in turn until the memory suffices."""


@dataclass(frozen=True)
class Greedy:
    """`Optimizer`: the baseline of every improvement figure; prices a handful of plans."""

    name: str = "greedy"

    def optimize(self, problem: Problem, budget: Budget, seed: int) -> Plan:
        """Return the heuristic's plan; see `go_rl.core.Optimizer`."""
        progress = Progress(budget)
        if problem.objective is Objective.RING:
            return _ring_plan(problem, progress, self.name, seed)
        latency = problem.objective is Objective.LATENCY
        try:
            device = (greedy_latency if latency else greedy_max_load)(problem).astype(np.int16)
            evaluation = pricer(problem).evaluate(device)
        except SearchError as error:
            device = np.zeros(problem.graph.num_nodes, np.int16)
            evaluation = failed(Status.GAVE_UP, problem.package.num_chips, str(error))
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


def greedy_partition(problem: Problem) -> Int16[np.ndarray, "N"]:
    """Return [N] the heuristic's chips of a ring problem; zeros when nothing legal was found."""
    plan = _ring_plan(problem, Progress(Budget(samples=len(MIXES))), "greedy", 0)
    return np.asarray(plan.device)


def topological_fill(
    workspace: RingWorkspace, share: Float64[np.ndarray, "N"]
) -> Int16[np.ndarray, "N"]:
    """Return [N] chips: nodes in topological order, a new chip whenever 1/k is reached."""
    middle = np.cumsum(share) - 0.5 * share
    return np.clip((middle * workspace.chips).astype(np.int16), 0, workspace.chips - 1)


def _ring_plan(problem: Problem, progress: Progress, name: str, seed: int) -> Plan:
    workspace = ring_workspace(problem)
    incumbent = Incumbent(workspace, progress)
    work = work_share(workspace)
    weight = problem.weight_bytes / max(problem.weight_bytes.sum(), 1.0)
    for mix in MIXES:
        share = (1 - mix) * work + mix * weight
        total = share.sum()
        if not total > 0:
            continue
        incumbent.offer(*workspace.legalise(topological_fill(workspace, share / total), 0))
        if incumbent.evaluation.status.ok or not problem.memory:
            break
    return workspace.plan(incumbent.best, name, seed, progress)
