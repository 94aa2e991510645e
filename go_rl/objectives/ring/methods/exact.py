"""Exact: OR-Tools CP-SAT on the ring, with its proven bound."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Int16

from go_rl.core import Budget, Plan, Problem, Progress, Status
from go_rl.core.decisions import Decisions
from go_rl.core.plan import CurvePoint
from go_rl.objectives.common.incumbent import Incumbent, finish_plan
from go_rl.objectives.ring.workspace import ring_workspace

WORK_SECONDS = 30.0
"""CP-SAT's work when the budget counts samples only, in its own seconds, which no machine's load
changes."""


@dataclass(frozen=True, eq=False)
class Exact:
    """`Optimizer`: CP-SAT from a start that it may use; a sample is one improved solution."""

    start: Int16[np.ndarray, "N"] | None = None
    """[N] a legal partition to start from; None: the compiler heuristic's."""
    workers: int = 2
    name: str = "exact"

    def with_start(self, plan: Plan) -> Exact:
        """Return the same method, to start from a legal plan for the same problem."""
        return replace(self, start=plan.device)

    def optimize(self, problem: Problem, budget: Budget, seed: int) -> Plan:
        """Return CP-SAT's best partition and bound; see `go_rl.core.Optimizer`."""
        from go_rl.solvers.twins.cp_sat import (  # OR-Tools: a fifth of a second
            CpSatOptions,
            optimise,
        )

        workspace, progress = ring_workspace(problem), Progress(budget)
        incumbent = Incumbent(workspace, progress)
        start = workspace.work_fill if self.start is None else self.start
        legal, evaluation, fidelity = workspace.repair(start, seed)
        incumbent.offer(legal, evaluation, fidelity)
        device = None if legal is None else legal.device[0]
        hopeless = device is None and evaluation.status is Status.INFEASIBLE
        if hopeless or progress.proved:
            return finish_plan(workspace, incumbent, self.name, seed, progress)
        timed = budget.seconds is not None
        seconds = max(progress.remaining_seconds, 0.05) if timed else WORK_SECONDS
        # A bound must hold for plans that copy fewer nodes too, so copies are not charged.
        options = CpSatOptions(
            seconds, self.workers if timed else 1, seed, by_clock=timed, copies=False
        )
        found = optimise(workspace.solver.instance, options, hint=device)
        copied = workspace.solver.instance.replicated.any()
        if found.device is not None:
            decisions = Decisions(found.device[None])
            before = progress.best
            if incumbent.offer(decisions, workspace.detail(decisions)):
                progress.curve[-1:] = [*_between(found.curve, before, progress.curve[-1])]
        elif found.status is Status.INFEASIBLE and device is None and not copied:
            reason = "CP-SAT proved that no partition obeys the rules"
            incumbent.offer(None, workspace.failed(found.status, reason))
        bound = found.bound if np.isfinite(found.bound) else 0.0
        return finish_plan(workspace, incumbent, self.name, seed, progress, bound)


def _between(
    found: Iterable[tuple[float, float]], best: float, last: CurvePoint
) -> Iterator[CurvePoint]:
    """CP-SAT's improvements on ``best`` on the way to ``last``; its own costs leave copies out."""
    for wall, value in found:
        if last.seconds < value < best:
            best = value
            yield CurvePoint(last.samples, wall, value)
    yield last
