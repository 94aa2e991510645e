"""Linearised dynamic programming: the best cuts of several topological orders."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from jaxtyping import Int32

from go_rl.core import Budget, Plan, Problem, Progress, SearchError
from go_rl.objectives.common.incumbent import Incumbent, finish_plan
from go_rl.objectives.ring.linear_cuts import LinearCuts
from go_rl.objectives.ring.orders import candidate_orders
from go_rl.objectives.ring.side_by_side import MOST_UNITS, SideBySide
from go_rl.objectives.ring.workspace import RingWorkspace, ring_workspace

MAX_ORDERS = 40
"""Orders tried at most, unless more are asked for."""
SEVERAL_ORDERS = 10
"""Number of first orders that are also cut into stages of several chips."""
SQUEEZE = 0.93
"""Factor on the weight limit after a plan ran out of memory: live tensors need room too."""

Best = Callable[[float, float], tuple[float, Int32[np.ndarray, "U"] | None]]
"""Best cut: maps the largest T and the bytes of weights a chip may hold to T and stages."""


@dataclass(frozen=True)
class LinearDP:
    """`Optimizer`: cuts of given, level-wise and depth-first orders; under the triangle rule the
    first orders also with several chips a stage. A sample is one such plan."""

    orders: int = MAX_ORDERS
    """Orders that it tries at most; after the first few they are drawn."""
    name: str = "linear-dp"

    def __post_init__(self) -> None:
        if self.orders < 1:
            raise SearchError(f"linear-dp: orders must be >= 1, not {self.orders}")

    def optimize(self, problem: Problem, budget: Budget, seed: int) -> Plan:
        """Return the best cut order; see `go_rl.core.Optimizer`."""
        workspace, progress = ring_workspace(problem), Progress(budget)
        incumbent = Incumbent(workspace, progress)
        if workspace.solver.feasible_so_far:
            _try_orders(workspace, progress, incumbent, seed, self.orders)
        else:
            empty = np.zeros(problem.graph.num_nodes, np.int16)
            incumbent.offer(*workspace.repair(empty))
        return finish_plan(workspace, incumbent, self.name, seed, progress)


def _try_orders(
    workspace: RingWorkspace, progress: Progress, incumbent: Incumbent, seed: int, orders: int
) -> None:
    units, rules = workspace.units, workspace.problem.rules
    wide = rules.triangle and not workspace.problem.all_chips and units.num_units <= MOST_UNITS
    limit = workspace.weight_limit
    for number, order in enumerate(candidate_orders(units, seed)):
        if number == orders or _over(workspace, progress):
            break
        cuts = workspace.cuts(order)
        limit = _try(workspace, progress, incumbent, _one_chip_each(workspace, cuts), seed, limit)
        if wide and number < SEVERAL_ORDERS and not _over(workspace, progress):
            several_chips = partial(SideBySide(cuts, workspace.chips).best, workspace.bound)
            limit = _try(workspace, progress, incumbent, several_chips, seed, limit)


def _over(workspace: RingWorkspace, progress: Progress) -> bool:
    return progress.spent or progress.best <= workspace.bound * (1 + 1e-4)


def _one_chip_each(workspace: RingWorkspace, cuts: LinearCuts) -> Best:
    def best(high: float, weight: float) -> tuple[float, Int32[np.ndarray, "U"] | None]:
        chips, exactly = workspace.chips, workspace.problem.all_chips
        return cuts.best(workspace.bound, high, chips, weight, exactly)

    return best


def _try(
    workspace: RingWorkspace,
    progress: Progress,
    incumbent: Incumbent,
    best: Best,
    seed: int,
    limit: float,
) -> float:
    """Price the best stages of an order; return the weight limit, less where they did not fit, half
    the way back where no stages keep it."""
    units, known = workspace.units, incumbent.evaluation.seconds
    _, stage = best(min(units.serial_seconds, known), limit)
    if stage is None and not np.isfinite(known):
        _, stage = best(units.serial_seconds, limit)
    if stage is None:
        progress.record(float("inf"))
        return limit if np.isfinite(known) else loosened(limit, workspace.weight_limit)
    repaired = workspace.repair(workspace.nodes_of(stage[units.unit_of]), seed)
    incumbent.offer(*repaired)
    return limit if repaired.evaluation.status.ok else limit * SQUEEZE


def loosened(limit: float, most: float) -> float:
    """Return a weight limit half the way back to ``most``, for when no stages keep it."""
    return 0.5 * (limit + most) if limit < most else limit
