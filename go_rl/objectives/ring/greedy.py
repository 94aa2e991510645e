"""The compiler heuristic on a ring: topological fill balanced by compute, repaired to be legal."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64, Int16

from go_rl.core import Budget, Plan, Problem, Progress
from go_rl.objectives.incumbent import Incumbent, finish_plan
from go_rl.objectives.ring.workspace import RingWorkspace, ring_workspace, work_share

MIXES = (0.0, 0.5, 0.8, 1.0)
"""Shares of weight bytes in what is balanced; tried in turn until the memory suffices."""


def greedy_partition(problem: Problem) -> Int16[np.ndarray, "N"]:
    """Return [N] the heuristic's chips of a ring problem; zeros when nothing legal was found."""
    plan = greedy_ring_plan(problem, Progress(Budget(samples=len(MIXES))), "greedy", 0)
    return np.asarray(plan.device)


def topological_fill(
    workspace: RingWorkspace, share: Float64[np.ndarray, "N"]
) -> Int16[np.ndarray, "N"]:
    """Return [N] chips: nodes in topological order, a new chip whenever 1/k is reached."""
    middle = np.cumsum(share) - 0.5 * share
    return np.clip((middle * workspace.chips).astype(np.int16), 0, workspace.chips - 1)


def greedy_ring_plan(problem: Problem, progress: Progress, name: str, seed: int) -> Plan:
    """Return the best fill; a handful of plans are priced."""
    workspace = ring_workspace(problem)
    incumbent = Incumbent(workspace, progress)
    work = work_share(workspace)
    weight = problem.weight_bytes / max(problem.weight_bytes.sum(), 1.0)
    for mix in MIXES:
        share = (1 - mix) * work + mix * weight
        total = share.sum()
        if not total > 0:
            continue
        incumbent.offer(*workspace.legalize(topological_fill(workspace, share / total), 0))
        if incumbent.evaluation.status.ok or not problem.memory:
            break
    return finish_plan(workspace, incumbent, name, seed, progress)
