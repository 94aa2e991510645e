"""`export_sink`: a plan as the string, JSON or annotated model that another tool takes."""

from __future__ import annotations

from pathlib import Path

from go_rl.api.load import graph_of
from go_rl.core import OpGraph, Plan


def export_sink(
    plan: Plan | str | Path,
    model: OpGraph | str | Path,
    to: str,
    out: str | Path | None = None,
    graph: OpGraph | None = None,
) -> str:
    """Return a plan in the notation of another tool, or write it to a file.

    Args:
        plan: a plan, or the path of a plan.json.
        model: what the plan is for: a graph, or what `load` reads with the plan's dims. Sinks
            ``onnx`` and ``genai`` need the path of the ONNX file, ``iree`` the name of the JAX
            function.
        to: one of `SINK_NAMES` (docs/export.md).
        out: file to write; None: the text is returned only.
        graph: of the model, where it is read already.

    Returns:
        The text; empty where the file is no text.

    Raises:
        SplitError: no such sink, one that cannot say the plan, or a file that cannot be written.
        PlanError: the plan is malformed, a failure, rejected by the checker, or of another model.
        ReadError: the model cannot be read.
    """
    from go_rl.graphs.cutting.colocation import graph_of_plan
    from go_rl.plans.legal import require_legal
    from go_rl.plans.sinks import render_sink, write_sink

    plan = Plan.of(plan)
    graph = graph_of_plan(plan, graph_of(model, plan.dims) if graph is None else graph)
    require_legal(plan, graph)
    path = None if isinstance(model, OpGraph) else model
    return render_sink(to, plan, graph, path) if out is None else (
        write_sink(to, plan, graph, out, path)
    )  # fmt: skip


def sink_notes(plan: Plan, graph: OpGraph, to: str) -> tuple[str, ...]:
    """Return sentences on what the notation of `export_sink` leaves out of a plan: the copies of
    operators that further devices compute."""
    from go_rl.plans.sinks import sink_notes as notes

    return notes(to, plan, graph)
