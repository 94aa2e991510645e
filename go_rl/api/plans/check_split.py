"""`check_split`: a split made elsewhere, held against the rules, the bound and its best move."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from go_rl.api.load import graph_of
from go_rl.api.options import FOR_NAMES, HardwareChoice, JudgeOptions, PosingOptions, options_from
from go_rl.api.problem import problem_for
from go_rl.core import NodeId, Objective, OpGraph, Problem
from go_rl.core.evaluation import finite

if TYPE_CHECKING:
    from go_rl.graphs.readers.model_options import Inputs
    from go_rl.plans.splits.judge import Judgement as Judgement


def check_split(
    split: str | Path,
    model: OpGraph | str | Path,
    hardware: HardwareChoice = None,
    *,
    fixed: Mapping[NodeId, int] | None = None,
    dims: Mapping[str, int] | None = None,
    inputs: Inputs | None = None,
    micro_batches: int | None = None,
    **options: Any,
) -> Judgement:
    """Judge the split of a model that somebody else chose.

    Args:
        split: path of a file, or the text itself, such as ``"8,8,8,8"``, in a notation of
            docs/export.md.
        model: a graph, or what `go_rl.load` reads.
        hardware: a preset's name, a JSON file, a `Hardware`, or ``"file"``.
        fixed: devices of nodes that must not move; see `go_rl.optimize`.
        dims, inputs, micro_batches: for a model given by name; see `go_rl.load`.
        options: further fields of `JudgeOptions`.

    Raises:
        SplitError: the split is unreadable, or of another model or hardware.
        GoRLError: other bad input. A rule that is broken is part of the judgement.
    """
    from go_rl.plans.splits.judge import judge
    from go_rl.plans.splits.notations import STAGED, read_split

    chosen = options_from(JudgeOptions, {"hardware": hardware, **options}, "check_split")
    graph = graph_of(model, dims, inputs=inputs, micro_batches=micro_batches)
    problem = problem_for(graph, chosen, fixed)
    given = read_split(split, problem.graph, problem.hardware, chosen.notation)
    if given.notation in STAGED:
        problem = pipelined(problem, chosen, fixed)
    return judge(given, problem, chosen.moves)


def pipelined(
    problem: Problem, options: PosingOptions, fixed: Mapping[NodeId, int] | None = None
) -> Problem:
    """Return the problem with the objective of a pipeline, the slowest stage instead of the time of
    one sample, unless the user chose another or links of several classes leave none."""
    replayed = problem.objective.traits.is_replayed
    if options.objective is not None or not (replayed and problem.hardware.links.uniform):
        return problem
    return problem_for(problem.graph, replace(options, objective=str(Objective.MAX_LOAD),
                                              hardware=problem.hardware), fixed)  # fmt: skip


def counts_layers(found: Judgement) -> bool:
    """Return whether `go_rl.optimize` can plan the model in the parts of the split's notation."""
    from go_rl.graphs.cutting.layer_blocks import layer_blocks

    return found.split.notation in FOR_NAMES and layer_blocks(found.problem.graph).count > 0


def judgement_json(found: Judgement) -> dict[str, Any]:
    """Return a judgement as the command's JSON document; every number is finite or null."""
    from go_rl.plans.sinks import moved_string
    from go_rl.report.bottleneck import bottleneck

    problem, plan, verdict = found.problem, found.plan, found.verdict
    held, repaired, move = bottleneck(problem, plan), found.repaired, found.move
    return {
        "accepted": found.ok,
        "status": str(verdict.status),
        "notation": found.split.notation,
        "objective": str(problem.objective),
        "hardware": problem.hardware.name,
        "value": finite(plan.value),
        "throughput": plan.evaluation.throughput,
        "bound": finite(plan.bound),
        "gap": finite(plan.gap),
        "violations": [{"rule": v.rule, "message": v.message} for v in verdict.violations],
        "detail": plan.evaluation.detail,
        "bottleneck": None if held is None else held.to_json(),
        "device_seconds": [finite(each) for each in plan.evaluation.device_seconds],
        "move": None if move is None else move.to_json() | {
            "split": moved_string(found.split, move, problem.graph, problem.hardware)
        },
        "repaired": None if repaired is None else {
            "value": finite(repaired.value),
            "moved": int((repaired.device != found.split.device).sum()),
        },
        "notes": [*found.split.notes, *problem.notes],
    }  # fmt: skip
