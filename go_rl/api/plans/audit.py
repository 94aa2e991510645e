"""`audit_session`: what a session of onnxruntime ran where, held against a plan."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from go_rl.api.load import load
from go_rl.core import OpGraph, Plan

if TYPE_CHECKING:
    from go_rl.plans.audit.session import SessionAudit as SessionAudit


def audit_session(
    plan: Plan | str | Path,
    model: str | Path,
    profile: str | Path,
    *,
    optimised: str | Path | None = None,
    providers: Mapping[int, str] | None = None,
    graph: OpGraph | None = None,
) -> SessionAudit:
    """Return the execution provider of each operator in one session of onnxruntime, and what
    differs from a plan.

    Args:
        plan: a plan, or the path of a plan.json.
        model: the ONNX file that it is for, and that the session loaded.
        profile: the session's, which ``SessionOptions.enable_profiling`` asks for and
            ``session.end_profiling()`` names.
        optimised: what the session wrote to ``SessionOptions.optimized_model_filepath``; without
            it, operators that onnxruntime joins are not seen.
        providers: execution provider by device, such as ``{0: "CUDA"}``. Without one, a CPU is the
            CPU's, and any other device is any other provider.
        graph: of the model; None: it is read with the plan's dims.

    Raises:
        ExecutionError: the profile cannot be read, or is another model's; an unknown provider.
        PlanError: the plan is malformed, a failure, rejected by the checker or of another model.
        SplitError: a model cannot be read.
    """
    from go_rl.graphs.cutting.colocation import graph_of_plan
    from go_rl.plans.audit.profile import read_profile
    from go_rl.plans.audit.session import audit_session as audit
    from go_rl.plans.legal import require_legal

    plan = Plan.of(plan)
    kernels = read_profile(profile)
    graph = load(model, plan.dims) if graph is None else graph
    require_legal(plan, graph_of_plan(plan, graph))
    return audit(plan, graph, model, kernels, optimised, providers)
