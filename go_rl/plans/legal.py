"""`problem_of` a plan, and `require_legal`: the checker accepts a plan that leaves."""

from __future__ import annotations

from dataclasses import replace

from go_rl.core import (
    CheckpointError,
    HardwareError,
    Objective,
    OpGraph,
    Plan,
    PlanError,
    Problem,
    ProblemError,
    RecordError,
    rule_set,
)
from go_rl.core.errors import nearest
from go_rl.verify.check_plan import Verdict, check_plan, check_same_graph
from go_rl.verify.kernel_rules import legal_kernels
from go_rl.verify.rules import legal


def problem_of(plan: Plan, graph: OpGraph) -> Problem:
    """Return the problem that a plan says it solves, rebuilt on ``graph``.

    Raises:
        PlanError: the plan's hardware, objective or cost model is malformed, or the graph has
            other nodes.
        CheckpointError, RecordError: what its cost model learned or measured is not here.
    """
    from go_rl.costs.models import ProblemOptions, make_problem, named_cost
    from go_rl.costs.models.registry import AUTO, FORMS, WORDS, is_cost
    from go_rl.graphs.cutting.colocation import colocation_of

    if plan.nodes != graph.names:  # whose operators the plan's cost model may not know
        check_same_graph(plan, graph)
    if plan.cost_model == AUTO or not is_cost(plan.cost_model):
        raise PlanError(
            f"the plan's cost_model is {plan.cost_model!r}{nearest(plan.cost_model, WORDS)} "
            f"It must be one of {', '.join(FORMS[1:])}"
        )
    if plan.objective not in list(Objective):
        raise PlanError(f"the plan's objective {plan.objective!r} is unknown")
    hardware = plan.described_hardware
    try:
        options = ProblemOptions(
            objective=Objective(plan.objective),
            rules=rule_set(plan.rules),
            memory=plan.memory,
            all_chips=plan.all_chips,
            fixed=plan.fixed,
            cost_model=named_cost(plan.cost_model, hardware),
            colocation=colocation_of(plan, graph),
            allow_training=True,
        )
    except (HardwareError, ProblemError) as error:
        raise PlanError(str(error)) from error
    return make_problem(graph, hardware, options)


def require_plan_of(plan: Plan, graph: OpGraph) -> None:
    """Raise a `PlanError` where a plan is of another graph, or a failure."""
    check_same_graph(plan, graph)
    if not plan.evaluation.status.ok:
        raise PlanError(f"the plan is a failure ({plan.evaluation.status}); nothing is exported")


def require_legal(plan: Plan, graph: OpGraph) -> None:
    """Check that the checker accepts a plan which is to be run or written for other tools.

    Where the data that its prices rest on are not here (another machine's measurements), its
    rules, pins, copies and kernels are checked, and neither its value nor memory over time.

    Args:
        plan: see there.
        graph: that it is for.

    Raises:
        PlanError: the plan is of another graph, malformed, a failure, or rejected.
    """
    require_plan_of(plan, graph)
    try:
        verdict = check_plan(plan, problem_of(plan, graph))
    except (CheckpointError, RecordError):
        verdict = _unpriced_verdict(plan, graph)
    if not verdict.ok:
        raise PlanError(
            f"the checker rejects the plan, and nothing is exported: {verdict.sentence}"
        )


def _unpriced_verdict(plan: Plan, graph: OpGraph) -> Verdict:
    """The verdict on what no price enters."""
    problem = problem_of(replace(plan, cost_model="analytical"), graph)
    broken = legal(problem, plan.device, plan.replicas)
    if not broken and problem.objective.traits.is_replayed:
        broken = legal_kernels(problem, plan.device, plan.priority, plan.fusion_group)
    return Verdict(broken[0].status if broken else plan.evaluation.status, broken)
