"""`page_document`: everything that the page of a plan shows, as one JSON object.

``N`` operators and ``I`` items, operators and blocks, as in `go_rl.report.page.scopes`. Times are
seconds and sizes bytes; null stands where there is no finite number.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np
from jaxtyping import Float

from go_rl.compare.portfolio.method_rows import cells, headings, reference_name, table_unit
from go_rl.core import NO_DIM, Hardware, OpGraph, Plan, Problem
from go_rl.core.evaluation import finite
from go_rl.core.printable import counted, printable
from go_rl.core.unit_text import percent, seconds_text
from go_rl.objectives.makespan.simulate.timeline import Timeline
from go_rl.report.bottleneck import BusiestPart, bottleneck
from go_rl.report.notes import shortened
from go_rl.report.page.methods_file import MethodRuns
from go_rl.report.page.nested_layout import nested_layout
from go_rl.report.page.scopes import scope_tree
from go_rl.report.page.timetable import slack_of, timetable
from go_rl.report.page.tried_moves import Hindrance, TriedMove, tried_moves
from go_rl.report.timeline.plan_timeline import plan_timeline, replay_obstacle
from go_rl.verify.check_plan import check_plan

DIGITS = 5
"""Significant digits of a number on the page."""


@dataclass(frozen=True, eq=False)
class ShownPlan:
    """One plan of a page."""

    problem: Problem
    plan: Plan
    methods: MethodRuns | None = None
    """The methods that it was chosen from; None: not known."""


def page_document(shown: Sequence[ShownPlan]) -> dict[str, Any]:
    """Return the object that ``assets/main.js`` reads; all plans are of one graph."""
    first = shown[0]
    return {
        "title": printable(f"{first.problem.graph.name} on {first.problem.hardware.name}"),
        "graph": graph_part(first.problem.graph),
        "plans": [_plan_part(each, "AB"[i]) for i, each in enumerate(shown)],
    }


def graph_part(graph: OpGraph) -> dict[str, Any]:
    """Return names and places: of the [I] items, the lines between them, and the edges."""
    tree = scope_tree(graph)
    layout = nested_layout(graph, tree)
    return {
        "names": [printable(str(name)) for name in (*graph.names, *tree.names)],
        "types": [printable(name) for name in graph.op_type],
        "sources": [printable(text) for text in graph.source],
        "shapes": [_shape(row) for row in graph.output_shape.tolist()],
        "flops": _short(graph.flops),
        "parent": tree.parent.tolist(),
        "children": [list(held) for held in tree.children],
        "box": layout.box.round(1).ravel().tolist(),
        "lines": layout.line.ravel().tolist(),
        "lineBytes": _short(layout.line_bytes),
        "senders": graph.senders.tolist(),
        "receivers": graph.receivers.tolist(),
        "edgeBytes": _short(graph.edge_bytes),
    }  # fmt: skip


def _shape(dims: Iterable[int]) -> str:
    return "×".join(str(d) for d in dims if d != NO_DIM)


def _plan_part(shown: ShownPlan, letter: str) -> dict[str, Any]:
    problem, plan = shown.problem, shown.plan
    replayed = problem.objective.traits.is_replayed
    obstacle = replay_obstacle(problem, plan) if replayed else ""
    seconds = problem.seconds[problem.device_kind[plan.device], np.arange(len(plan.device))]
    free = problem.graph.is_fed & replayed
    return {
        "letter": letter,
        "method": plan.optimizer,
        "hardware": printable(problem.hardware.name),
        "word": problem.objective.traits.device,
        "valueName": problem.objective.traits.value_name,
        "value": finite(plan.value),
        "bound": finite(plan.bound),
        "facts": _facts(problem, plan, None if obstacle else bottleneck(problem, plan)),
        "verdict": _verdict(problem, plan),
        "notes": [shortened(printable(str(note))) for note in plan.notes],
        "device": np.where(free, -1, plan.device).tolist(),
        "copies": {str(n): list(devices) for n, devices in plan.replicas.items()},
        "kernel": None if plan.fusion_group is None else plan.fusion_group.tolist(),
        "seconds": _short(np.where(free, 0.0, seconds)),
        "weights": _short(problem.weight_bytes),
        "results": _short(problem.output_bytes),
        "hindrances": [str(each) for each in Hindrance],
        "loads": _loads(problem, plan),
        "obstacle": printable(obstacle),
        "methods": None if shown.methods is None else _methods(shown.methods, plan),
    } | (_not_replayed(problem) if obstacle else _in_time(problem, plan))


def _in_time(problem: Problem, plan: Plan) -> dict[str, Any]:
    """Slack and possible moves of each operator, and one iteration."""
    replayed = problem.objective.traits.is_replayed
    timeline: Timeline | None = plan_timeline(problem, plan) if replayed else None
    return {
        "slack": _short(slack_of(problem, plan, timeline)),
        "moves": [[_move(move) for move in moves] for moves in tried_moves(problem, plan)],
        "timetable": _rounded(timetable(problem, plan, timeline)),
    }


def _not_replayed(problem: Problem) -> dict[str, Any]:
    """The same fields for a plan that cannot be replayed: neither slack, moves nor timetable."""
    count = problem.graph.num_nodes
    return {"slack": [None] * count, "moves": [[] for _ in range(count)], "timetable": None}


def _facts(problem: Problem, plan: Plan, held: BusiestPart | None) -> list[tuple[str, str]]:
    traits = problem.objective.traits
    used = f"{len(np.unique(plan.device))} of {problem.hardware.num_devices}"
    busiest = "–" if held is None else held.sentence.removeprefix("busiest: ")
    rate = plan.evaluation.throughput
    throughput = f"{rate:,.0f}" if rate >= 1000 else f"{rate:.4g}"
    samples = counted(plan.samples, "sample")
    facts = [
        (traits.value_name, f"{seconds_text(plan.value)} an iteration, {throughput} iterations/s"),
        ("proven bound", _bound(plan)),
        ("busiest", busiest),
        ("method", f"{plan.optimizer}, {samples}, {plan.wall_seconds:.3g} s"),
        (f"{traits.device}s used", used),
        ("hardware", printable(problem.hardware.description or problem.hardware.name)),
        ("operators", f"{problem.graph.num_nodes:,}, priced by {plan.cost_model}"),
    ]
    return [*facts, ("rules", problem.rules.name)] if traits.has_rules else facts


def _bound(plan: Plan) -> str:
    if plan.bound <= 0 or not isfinite(plan.gap):
        return "none"
    gap = "the plan is proved optimal" if plan.optimal else f"gap {percent(plan.gap)}"
    return f"{seconds_text(plan.bound)}, {gap}"


def _verdict(problem: Problem, plan: Plan) -> dict[str, Any]:
    verdict = check_plan(plan, problem)
    said = [f"{v.rule}: {v.message}" for v in verdict.violations]
    return {"ok": verdict.ok, "text": verdict.status_sentence, "violations": said}


def _move(move: TriedMove) -> tuple[int, int, str]:
    return move.device, list(Hindrance).index(move.hindrance), printable(move.reason)


def _loads(problem: Problem, plan: Plan) -> list[dict[str, Any]]:
    """One object a device: what it is, what keeps it busy, what it holds."""
    evaluation = plan.evaluation
    hardware: Hardware = problem.hardware
    per_device = len(evaluation.link_seconds) == hardware.num_devices
    count = np.bincount(plan.device, minlength=hardware.num_devices)
    return [
        {
            "kind": printable(device.kind),
            "seconds": finite(evaluation.device_seconds[d]),
            "link": finite(evaluation.link_seconds[d]) if per_device else None,
            "weights": finite(evaluation.weight_bytes[d]),
            "peak": finite(evaluation.peak_bytes[d]),
            "capacity": finite(device.memory_bytes),
            "operators": int(count[d]),
        }
        for d, device in enumerate(hardware.devices)
    ]


def _methods(runs: MethodRuns, plan: Plan) -> dict[str, Any]:
    unit = table_unit(runs.table)
    return {
        "heads": headings(unit, plan.objective, reference_name(runs.table)),
        "cells": [cells(row, unit, plan.objective) for row in runs.table],
        "names": [row.method for row in runs.table],
        "values": [row.value for row in runs.table],
        "samples": [row.samples for row in runs.table],
        "seconds": [row.wall_seconds for row in runs.table],
        "curves": runs.curves,
        "bound": runs.bound,
    }


def _rounded(table: dict[str, Any]) -> dict[str, Any]:
    return table | {name: _short(table[name]) for name in ("start", "seconds")}


def _short(numbers: Iterable[float] | Float[np.ndarray, "X"]) -> list[float | None]:
    """Numbers of few digits, which is what makes a page of a large graph long."""
    return [float(f"{x:.{DIGITS}g}") if isfinite(x) else None for x in map(float, numbers)]
