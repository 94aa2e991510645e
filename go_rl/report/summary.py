"""A plan in a few lines of text."""

from __future__ import annotations

import numpy as np

from go_rl.core import Plan, proved_optimal
from go_rl.report.notes import note_lines
from go_rl.report.tables import percent, unit_for


def plan_lines(plan: Plan, reference: Plan | None = None) -> list[str]:
    """Return the sentences that go under the table: value, against the ``reference`` plan of the
    compiler heuristic, bound, devices, memory, notes."""
    evaluation = plan.evaluation
    if not evaluation.status.ok:
        return [
            f"{evaluation.status.sentence} {evaluation.detail}".rstrip(),
            *note_lines(plan.notes),
        ]
    return [
        f"best: {plan.optimizer}, {_time(plan.value)} an iteration"
        f"{_against(plan, reference)}, {_bound_sentence(plan)}",
        f"devices used: {len(np.unique(plan.device))} of {len(evaluation.device_seconds)}"
        f"{_effective(plan)}{_copies(plan)}",
        *_fidelity(plan),
        f"verdict of the independent checker: {evaluation.status.sentence}",
        *note_lines(plan.notes),
    ]


def _against(plan: Plan, reference: Plan | None) -> str:
    """How much faster than the reference plan, where there is one to compare with."""
    if reference is None or reference.optimizer == plan.optimizer:
        return ""
    if not reference.evaluation.status.ok or plan.value <= 0:
        return f", where {reference.optimizer} found no plan"
    ratio = reference.value / plan.value
    return f", {ratio:.2f} times the throughput of {reference.optimizer}"


def _bound_sentence(plan: Plan) -> str:
    if proved_optimal(plan.value, plan.bound):
        return "proved optimal"
    if plan.bound <= 0 or not np.isfinite(plan.gap):
        return "no bound was proved"
    return f"at most {percent(plan.gap)} above the optimum (no plan beats {_time(plan.bound)})"


def _effective(plan: Plan) -> str:
    chips = plan.effective_chips
    return "" if chips is None else f", {chips:.1f} effective"


def _fidelity(plan: Plan) -> list[str]:
    """How the plan follows from what its method proposed."""
    found = plan.fidelity
    if found is None:
        return []
    line = f"made legal by: {found.legalized_by.word}"
    if found.displacement is not None:
        line += f", {found.displacement:.3g} chips from the proposal in the mean"
    if found.log_prob_gap is not None:
        line += (
            f"; mean log-probability {found.log_prob_gap:.3g} below that of the likeliest "
            "legal plan known"
        )
    return [line]


def _copies(plan: Plan) -> str:
    copies = sum(len(devices) for devices in plan.replicas.values())
    return f"; {len(plan.replicas)} nodes have {copies} copies" if copies else ""


def _time(seconds: float) -> str:
    scale, unit = unit_for(seconds)
    return f"{seconds * scale:.4g} {unit}"
