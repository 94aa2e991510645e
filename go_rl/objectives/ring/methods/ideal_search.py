"""`IdealDP`: the smallest T for which dynamic programming over ideals finds k stages."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Int16

from go_rl.core import Budget, Plan, Problem, Progress
from go_rl.objectives.common.incumbent import Incumbent, finish_plan
from go_rl.objectives.common.units import contracted
from go_rl.objectives.ring.ideals.ideal_dp import FOUND, NONE, TRUNCATED, Limits, stages_within
from go_rl.objectives.ring.linear_cuts import LinearCuts
from go_rl.objectives.ring.workspace import Repaired, RingWorkspace, ring_workspace

WIDTHS = (30, 300, 3000, 20_000)
"""States kept a layer, round by round; a round starts where the last one stopped."""
TOLERANCE = 2e-4
"""Relative width of the interval of T at which a round ends."""
ROUNDING = 1e-9
"""Relative slack that the weights rule allows."""
LARGEST = 12_000
"""Units beyond which a layer's bit sets no longer pay; larger problems get linear cuts only."""


@dataclass
class _Interval:
    """Interval of the best T: ``proven`` < T <= ``high``; T in (proven, tried] was not found."""

    proven: float
    tried: float
    high: float


@dataclass(frozen=True, eq=False)
class IdealDP:
    """`Optimizer`: bounded dynamic programming over ideals; raises the bound where it is exact.

    A sample is one T for which a partition was found and priced.
    """

    start: Int16[np.ndarray, "N"] | None = None
    """[N] a legal partition to better; None: none is known."""
    proven: float = 0.0
    """A bound proved before, seconds."""
    name: str = "ideal-dp"

    def with_start(self, plan: Plan) -> IdealDP:
        """Return the same method, to start from a legal plan for the same problem and its bound."""
        return replace(self, start=plan.device, proven=plan.bound)

    def optimize(self, problem: Problem, budget: Budget, seed: int) -> Plan:
        """Return the best partition found; see `go_rl.core.Optimizer`."""
        workspace, progress = ring_workspace(problem), Progress(budget)
        incumbent = Incumbent(workspace, progress)
        low = max(workspace.bound, self.proven)
        interval = _Interval(low, low, np.inf)
        if self.start is not None:
            incumbent.offer(*workspace.repair(self.start, seed))
            interval.high = incumbent.evaluation.seconds
        if not workspace.solver.feasible_so_far or workspace.units.num_units == 0:
            nothing = np.zeros(problem.graph.num_nodes, np.int16)
            incumbent.offer(*workspace.repair(nothing, seed))
        elif workspace.units.num_units <= LARGEST:
            for width in WIDTHS:
                if progress.spent or _closed(interval):
                    break
                _bisect(workspace, progress, incumbent, interval, width)
        return finish_plan(workspace, incumbent, self.name, seed, progress, interval.proven)


def _closed(interval: _Interval) -> bool:
    return interval.high <= interval.proven * (1 + TOLERANCE)


def _bisect(
    workspace: RingWorkspace,
    progress: Progress,
    incumbent: Incumbent,
    interval: _Interval,
    width: int,
) -> None:
    """Narrow the interval with ``width`` states a layer."""
    interval.tried = interval.proven
    seconds = interval.proven if np.isinf(interval.high) else _middle(interval)
    step, limit = 1.01, workspace.weight_limit
    units, refused = workspace.units, 0
    top = 4 * float(units.work.sum() + units.tensor_seconds.sum() + units.latency)
    while not progress.spent:
        limits = Limits(seconds, workspace.chips, limit, workspace.problem.rules.triangle, width)
        verdict, repaired = _attempt(workspace, limits, progress)
        if verdict == TRUNCATED and progress.spent:
            return
        if repaired is not None:
            incumbent.offer(*repaired)
        if repaired is not None and repaired.evaluation.status.ok:
            value = repaired.evaluation.seconds
            interval.high = min(interval.high, max(value, interval.tried))
            if value > seconds * (1 + TOLERANCE):
                # Repair could not keep what was found: the same T would only be found again.
                interval.tried = seconds
        elif repaired is not None and np.isfinite(limit) and refused < 8:
            limit, refused = 0.95 * limit, refused + 1
            continue
        else:
            if verdict == NONE and _refuted(workspace, limits, progress):
                interval.proven = seconds
                progress.raise_bound(seconds)
            interval.tried = seconds
            if np.isinf(interval.high):
                if seconds >= top:
                    return
                seconds, step = seconds * step or 1e-3 * top, min(1 + (step - 1) * 1.7, 4.0)
                continue
        if interval.high <= interval.tried * (1 + TOLERANCE):
            return
        seconds = _middle(interval)


def _refuted(workspace: RingWorkspace, limits: Limits, progress: Progress) -> bool:
    """Whether no legal plan at all is as fast, on whatever chips and with whatever copies, where
    none was found within the limits."""
    problem, capacity = workspace.problem, workspace.solver.instance.net.capacity
    if problem.rules.triangle:
        return False
    alike = len(problem.seconds) == 1 and capacity.min() == capacity.max()
    if alike and not problem.rules.replicate and limits.weight == workspace.weight_limit:
        return True
    units = contracted(workspace.relaxed, limits.seconds)
    weight = float(capacity.max()) * (1 + ROUNDING) if problem.memory else np.inf
    relaxed = replace(limits, weight=weight)
    return stages_within(units, relaxed, lambda: progress.spent)[0] == NONE


def _middle(interval: _Interval) -> float:
    return 0.5 * (interval.tried + interval.high)


def _attempt(
    workspace: RingWorkspace, limits: Limits, progress: Progress
) -> tuple[int, Repaired | None]:
    """Look for stages within the limits; legalize and price what is found."""
    problem, chips = workspace.problem, workspace.chips
    units = contracted(workspace.units, limits.seconds)
    verdict, order, stage = stages_within(units, limits, lambda: progress.spent)
    if verdict != FOUND:
        return verdict, None
    if problem.all_chips and stage.max() + 1 < chips:
        spread = LinearCuts(units, order, limits.triangle).stages(
            limits.seconds, chips, limits.weight, exactly=True
        )
        stage = stage if spread is None else spread
    return verdict, workspace.repair(workspace.nodes_of(stage[units.unit_of]))
