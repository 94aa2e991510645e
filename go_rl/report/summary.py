"""A plan in a few lines of text."""

from __future__ import annotations

import numpy as np

from go_rl.compare.portfolio.registry import ONE_DEVICE
from go_rl.core import Plan, Problem, proved_optimal
from go_rl.core.printable import counted
from go_rl.core.unit_text import WIDEST_GAP, percent, seconds_text
from go_rl.report.bottleneck import BusiestPart
from go_rl.report.notes import note_lines


def plan_lines(
    plan: Plan, reference: Plan | None = None, held_by: BusiestPart | None = None
) -> list[str]:
    """Return the sentences that go under the table: value, against the ``reference`` plan, bound,
    devices, the busiest device or link, verdict, notes."""
    evaluation = plan.evaluation
    if not evaluation.status.ok:
        said = [evaluation.status.sentence, evaluation.detail]  # the latter may be the former
        return [" ".join(dict.fromkeys(filter(None, said))), *note_lines(plan.notes)]
    return [
        f"best: {plan.optimizer}, {seconds_text(plan.value)} an iteration"
        f"{_against(plan, reference)}, {bound_sentence(plan)}",
        f"devices used: {len(np.unique(plan.device))} of {len(evaluation.device_seconds)}"
        f"{_effective(plan)}{_copies(plan)}",
        *([] if held_by is None else [held_by.sentence]),
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
    return f", {ratio:.2f} times the throughput of {_named(reference)}"


def _named(reference: Plan) -> str:
    """A reference plan as a sentence says it."""
    if reference.optimizer != ONE_DEVICE:
        return reference.optimizer
    fused = reference.fusion_group is not None
    return f"the best single device, {'fused' if fused else 'nothing fused'}"


def problem_text(problem: Problem) -> str:
    """Return what a plan is asked for: the graph, the hardware, the objective and its rules."""
    text = f"{problem.graph.name} on {problem.hardware.name}, objective {problem.objective}"
    has_rules = problem.objective.traits.has_rules
    return f"{text}, rules {problem.rules.name}" if has_rules else text


def bound_sentence(plan: Plan) -> str:
    """Return how far a plan is from the proven bound, in words."""
    if proved_optimal(plan.value, plan.bound):
        return "proved optimal"
    if plan.bound <= 0 or not np.isfinite(plan.gap):
        return "no bound was proved"
    if plan.gap > WIDEST_GAP:
        return f"no useful bound (for this graph, no plan beats {seconds_text(plan.bound)})"
    return (
        f"at most {percent(plan.gap)} above the optimum (for this graph, no plan beats "
        f"{seconds_text(plan.bound)})"
    )


def _effective(plan: Plan) -> str:
    chips = plan.effective_chips
    return "" if chips is None else f", {chips:.1f} effective"


def _copies(plan: Plan) -> str:
    copies = sum(len(devices) for devices in plan.replicas.values())
    return f"; copies: {copies}, of {counted(len(plan.replicas), 'node')}" if copies else ""
