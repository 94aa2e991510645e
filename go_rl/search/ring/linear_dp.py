"""Linearised dynamic programming: the best cuts of several topological orders."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from go_rl.core import Budget, Plan, Problem, Progress
from go_rl.objectives.incumbent import Incumbent, finish_plan
from go_rl.objectives.ring.linear_cuts import LinearCuts
from go_rl.objectives.ring.orders import candidate_orders
from go_rl.objectives.ring.workspace import RingWorkspace, ring_workspace

MAX_ORDERS = 40
"""Orders tried at most."""
SQUEEZE = 0.93
"""Factor on the weight limit after a plan ran out of memory: live tensors need room too."""


@dataclass(frozen=True)
class LinearDP:
    """`Optimizer`: cuts of given, level-wise and depth-first orders; a sample is one order."""

    name: str = "linear-dp"

    def optimize(self, problem: Problem, budget: Budget, seed: int) -> Plan:
        """Return the best cut order; see `go_rl.core.Optimizer`."""
        workspace, progress = ring_workspace(problem), Progress(budget)
        incumbent = Incumbent(workspace, progress)
        if workspace.solver.feasible_so_far:
            _try_orders(workspace, progress, incumbent, seed)
        else:
            empty = np.zeros(problem.graph.num_nodes, np.int16)
            incumbent.offer(*workspace.repair(empty))
        return finish_plan(workspace, incumbent, self.name, seed, progress)


def _try_orders(
    workspace: RingWorkspace, progress: Progress, incumbent: Incumbent, seed: int
) -> None:
    units, problem = workspace.units, workspace.problem
    high = units.serial_seconds
    limit = workspace.weight_limit
    for order in candidate_orders(units, seed):
        if progress.spent or progress.samples >= MAX_ORDERS:
            break
        if progress.best <= workspace.bound * (1 + 1e-4):
            break
        cuts = LinearCuts(units, order, problem.rules.triangle)
        top = min(high, incumbent.evaluation.seconds)
        _, stage = cuts.best(workspace.bound, top, workspace.chips, limit, problem.all_chips)
        if stage is None and not np.isfinite(incumbent.evaluation.seconds):
            _, stage = cuts.best(workspace.bound, high, workspace.chips, limit, problem.all_chips)
        if stage is None:
            progress.record(float("inf"))
            continue
        repaired = workspace.repair(workspace.nodes_of(stage[units.unit_of]), seed)
        incumbent.offer(*repaired)
        if not repaired.evaluation.status.ok and np.isfinite(limit):
            limit *= SQUEEZE
