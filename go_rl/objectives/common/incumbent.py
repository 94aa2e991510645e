"""The best plan of a search, from its first sample to the finished `Plan`; for every objective."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from go_rl.core import Evaluation, Fidelity, Plan, Progress, Status, plan_for
from go_rl.core.decisions import Decisions, Scored
from go_rl.core.evaluation import STATUS_CODES
from go_rl.objectives.common.workspace import Workspace
from go_rl.solvers.replication import replicas_of

UNPLACED = (Status.GAVE_UP, Status.INFEASIBLE)
"""Failures without decisions that could be looked at."""


class Incumbent:
    """The best legal plan so far; while there is none, the last failure."""

    def __init__(self, workspace: Workspace, progress: Progress) -> None:
        self._workspace, self._progress = workspace, progress
        progress.raise_bound(workspace.target)
        self.decisions: Decisions | None = None
        """A batch of one; None: nothing could be placed."""
        self.fidelity: Fidelity | None = None
        """Fidelity of the plan to the proposal; None: nothing was repaired."""
        self.evaluation = workspace.infeasible or workspace.failed(Status.GAVE_UP)

    @property
    def hopeless(self) -> bool:
        """Whether no plan can exist."""
        return self._workspace.infeasible is not None

    @property
    def seconds(self) -> float:
        """Value of the best plan, seconds; inf while there is none."""
        return self.evaluation.seconds

    def offer(
        self,
        decisions: Decisions | None,
        evaluation: Evaluation,
        fidelity: Fidelity | None = None,
        samples: int = 1,
    ) -> bool:
        """Count an evaluated plan; True when it is the best so far."""
        improved = self._progress.record(evaluation.seconds, samples)
        if improved or (self._is_open and not evaluation.status.ok):
            self.decisions, self.evaluation, self.fidelity = decisions, evaluation, fidelity
        return improved

    def offer_scored(
        self,
        scored: Scored,
        rows: Iterable[int] | None = None,
        fidelity: Callable[[int], Fidelity | None] | None = None,
    ) -> None:
        """Count these rows (all of them) one by one, so that the curve is exact.

        ``fidelity`` knows more than ``scored`` does; it is asked of rows that are the best so far.
        """
        for i in range(len(scored.seconds)) if rows is None else rows:
            value = float(scored.seconds[i])
            failure = STATUS_CODES[int(scored.status[i])] if np.isinf(value) else None
            shown = failure is not None and self._is_open and failure not in UNPLACED
            if value < self._progress.best or shown:
                decisions = scored.decisions.row(i)
                known = scored.fidelity[i] if scored.fidelity else None
                own = known if fidelity is None else fidelity(i)
                self.offer(decisions, self._workspace.detail(decisions), own)
            else:
                self._progress.record(value)

    @property
    def _is_open(self) -> bool:
        """Whether a failure says more than what is known."""
        return self.decisions is None and not self.evaluation.status.ok


def best_of(
    workspace: Workspace, plans: Iterable[Decisions], name: str, seed: int, progress: Progress
) -> Plan:
    """Return the best of plans, evaluated batch by batch until the budget is spent; the first batch
    is always evaluated. See `finish_plan`."""
    incumbent = Incumbent(workspace, progress)
    if not incumbent.hopeless:
        for decisions in plans:
            incumbent.offer_scored(workspace.evaluate(decisions))
            if progress.spent:
                break
    return finish_plan(workspace, incumbent, name, seed, progress)


def finish_plan(
    workspace: Workspace,
    found: Incumbent | Decisions | Evaluation,
    name: str,
    seed: int,
    progress: Progress,
    bound: float = 0.0,
) -> Plan:
    """Return the plan of a search.

    Args:
        workspace: of the problem.
        found: what the search ends with: an incumbent, one plan (evaluated here), or why there is
            none.
        name: of the method.
        seed: that it was given.
        progress: its samples, seconds and curve.
        bound: may raise the quick bound.
    """
    decisions, evaluation = _ended(workspace, found)
    if decisions is None:
        decisions = Decisions(np.zeros((1, workspace.problem.graph.num_nodes), np.int16))
    else:
        decisions = workspace.with_copies(decisions)
    present, leader = decisions.present, decisions.kernel_leader
    return plan_for(
        workspace.problem,
        device=decisions.device[0],
        replicas={} if present is None else replicas_of(decisions.device[0], present[0]),
        evaluation=evaluation,
        bound=min(max(bound, workspace.target), evaluation.seconds),
        optimizer=name,
        seed=seed,
        samples=progress.samples,
        wall_seconds=progress.wall_seconds,
        curve=tuple(progress.curve),
        fidelity=found.fidelity if isinstance(found, Incumbent) else None,
        priority=None if decisions.priority is None else decisions.priority[0],
        fusion_group=None if leader is None else leader[0],
    )


def _ended(
    workspace: Workspace, found: Incumbent | Decisions | Evaluation
) -> tuple[Decisions | None, Evaluation]:
    if isinstance(found, Incumbent):
        return found.decisions, found.evaluation
    if isinstance(found, Decisions):
        return found, workspace.detail(found)
    return None, found
