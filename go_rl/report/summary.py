"""A plan, or a judged split, in a few lines of text."""

from __future__ import annotations

from math import isfinite

import numpy as np

from go_rl.compare.portfolio.registry import ONE_DEVICE
from go_rl.core import Plan, proved_optimal
from go_rl.core.printable import name_line
from go_rl.core.unit_text import WIDEST_GAP, percent, seconds_text
from go_rl.plans.sinks import moved_string
from go_rl.plans.splits.judge import Judgement
from go_rl.report.bottleneck import BusiestPart, bottleneck
from go_rl.report.notes import note_lines


def plan_lines(
    plan: Plan, reference: Plan | None = None, held_by: BusiestPart | None = None
) -> list[str]:
    """Return the sentences that go under the table: value, against the ``reference`` plan, bound,
    devices, the busiest device or link, verdict, notes."""
    evaluation = plan.evaluation
    if not evaluation.status.ok:
        return [
            f"{evaluation.status.sentence} {evaluation.detail}".rstrip(),
            *note_lines(plan.notes),
        ]
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
    return f"; {len(plan.replicas)} nodes have {copies} copies" if copies else ""


def split_lines(found: Judgement) -> list[str]:
    """Return the sentences about a split: the verdict and its rules, seconds and bound, the device
    that is the cause, the best move, notes."""
    problem, plan, verdict = found.problem, found.plan, found.verdict
    where = f"{problem.graph.name} on {problem.hardware.name}, objective {problem.objective}"
    if problem.objective.traits.has_rules:
        where += f", rules {problem.rules.name}"
    word = "legal" if found.ok else str(verdict.status)
    lines = [f"{word}: split in notation {found.split.notation}, {where}"]
    lines += [f"{v.rule}: {v.message}" for v in verdict.violations]
    if not found.ok:
        if not verdict.violations:
            lines.append(plan.evaluation.detail or verdict.status.sentence)
        lines += _repaired(found)
    else:
        used = len(np.unique(plan.device))
        lines.append(
            f"{seconds_text(plan.value)} an iteration, {bound_sentence(plan)}; {used} of "
            f"{problem.hardware.num_devices} devices used"
        )
        held = bottleneck(problem, plan)
        lines += [] if held is None else [held.sentence]
    lines.append(_move_line(found))
    return [*lines, *note_lines((*found.split.notes, *problem.notes))]


def _repaired(found: Judgement) -> list[str]:
    if found.repaired is None:
        return []
    moved = int((found.repaired.device != found.split.device).sum())
    return [
        f"the nearest legal plan that was found moves {moved} nodes: "
        f"{seconds_text(found.repaired.value)} an iteration, {bound_sentence(found.repaired)}"
    ]


def _move_line(found: Judgement) -> str:
    move, device = found.move, found.problem.objective.traits.device
    if move is None:
        return "no move of a single part to a neighbouring device " + (
            "gains anything" if found.ok else "makes it legal"
        )
    what = f"{name_line(move.part, 120)} from {device} {move.source} to {move.target}"
    if text := moved_string(found.split, move, found.problem.graph, found.problem.hardware):
        what += f", which is {text}"
    after = f"{seconds_text(move.seconds)} an iteration"
    if not isfinite(move.gain):
        return f"one move makes it legal: {what}, {after}"
    return f"best single move: {what}, {after}, {move.gain:.3f} times the throughput"
