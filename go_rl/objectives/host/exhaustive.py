"""All assignments of blocks to devices, for max-load and latency."""

from __future__ import annotations

import numpy as np

from go_rl.core import Plan, Problem, Progress
from go_rl.core.decisions import Decisions
from go_rl.objectives.common.all_assignments import (
    MOST_ASSIGNMENTS,
    assignments,
    best_of_batch,
    proved,
)
from go_rl.objectives.common.incumbent import finish_plan
from go_rl.objectives.host.hypergraph import contract_problem
from go_rl.objectives.host.workspace import host_workspace


def is_small_host(problem: Problem) -> bool:
    """Whether all assignments of blocks can be tried."""
    count = np.prod(contract_problem(problem).hypergraph.allowed.sum(axis=1, dtype=float))
    return bool(count <= MOST_ASSIGNMENTS)


def exhaust_host(problem: Problem, name: str, seed: int, progress: Progress) -> Plan:
    """Try all devices of blocks of nodes that share one; see `Exhaustive`."""
    workspace = host_workspace(problem)
    if workspace.infeasible is not None:
        return finish_plan(workspace, workspace.infeasible, name, seed, progress)
    contraction = contract_problem(problem)
    allowed = contraction.hypergraph.allowed
    tried, count = 0, np.prod(allowed.sum(axis=1))
    for device in assignments(allowed):
        seconds = workspace.evaluate(Decisions(device[:, contraction.block])).seconds
        tried, room = tried + len(device), progress.remaining_samples
        if (row := best_of_batch(progress, seconds)) is not None:
            all_priced = len(device) == count and np.isfinite(seconds).sum() <= room
            bound = progress.best if all_priced else 0.0
            found = Decisions(device[row][contraction.block][None])
            return finish_plan(workspace, found, name, seed, progress, bound)
        if progress.remaining_seconds <= 0:
            return finish_plan(workspace, workspace.gave_up, name, seed, progress)
    return finish_plan(workspace, proved(workspace, tried), name, seed, progress)
