"""A judged split in a few lines of text."""

from __future__ import annotations

from math import isfinite

import numpy as np

from go_rl.core.printable import name_line
from go_rl.core.unit_text import seconds_text
from go_rl.plans.sinks import moved_string
from go_rl.plans.splits.judge import Judgement
from go_rl.report.bottleneck import bottleneck
from go_rl.report.notes import note_lines
from go_rl.report.summary import bound_sentence, problem_text


def split_lines(found: Judgement) -> list[str]:
    """Return the sentences about a split: the verdict and its rules, seconds and bound, the device
    that is the cause, the best move, notes."""
    problem, plan, verdict = found.problem, found.plan, found.verdict
    word = "legal" if found.ok else verdict.status_word
    lines = [f"{word}: split in notation {found.split.notation}, {problem_text(problem)}"]
    lines += [f"{v.rule}: {v.message}" for v in verdict.violations]
    if not found.ok:
        if not verdict.violations:
            lines.append(plan.evaluation.detail or verdict.status_sentence)
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
