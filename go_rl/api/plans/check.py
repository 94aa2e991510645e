"""`check`, `execute`: a plan verified by the independent checker, and run on devices of JAX."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from go_rl.api.load import load
from go_rl.core import OpGraph, Plan, PlanError, Problem
from go_rl.plans.legal import problem_of
from go_rl.verify.check_plan import Verdict, check_belongs, check_plan

if TYPE_CHECKING:
    from go_rl.compare.portfolio import Result
    from go_rl.plans.run import Executed
    from go_rl.solvers.enumeration import Explanation as Explanation


__all__ = ["Verdict", "check", "execute", "explain", "problem_of", "require_accepted"]


def check(plan: Plan | str | Path, model: OpGraph | Problem | str | Path) -> Verdict:
    """Verify a plan independently of the method that made it.

    Args:
        plan: a plan, or the path of a plan.json.
        model: what the plan is for: a graph, a problem, or what `load` reads with the plan's dims.

    Raises:
        PlanError: the plan is malformed or belongs to another graph.
    """
    return check_plan(*_given(plan, model))


def _given(plan: Plan | str | Path, model: OpGraph | Problem | str | Path) -> tuple[Plan, Problem]:
    plan = Plan.of(plan)
    if not isinstance(model, OpGraph | Problem):
        model = load(model, plan.dims)
    return plan, model if isinstance(model, Problem) else problem_of(plan, model)


def explain(plan: Plan | str | Path, model: OpGraph | Problem | str | Path) -> Explanation:
    """Say what is legal beside the split of a small ring plan: every partition is tried.

    Args:
        plan, model: as for `check`.

    Raises:
        PlanError: the plan is malformed or belongs to another graph.
        SolverError: the plan is not for a ring, or its problem has too many assignments to try.
    """
    from go_rl.solvers.enumeration import explain_partition

    plan, problem = _given(plan, model)
    check_belongs(plan, problem)
    return explain_partition(problem, plan.device)


def require_accepted(result: Result) -> None:
    """Raise a `PlanError` where the checker rejects a result's best plan: a defect of go_rl."""
    verdict = check_plan(result.best, result.problem)
    if result.best.evaluation.status.ok and not verdict.ok:
        raise PlanError(
            f"the plan by {result.best.optimizer!r} was rejected by the checker, which is a defect "
            f"in go_rl and nothing was written: {verdict.sentence}"
        )


def execute(
    plan: Plan | str | Path,
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    *,
    weights: Collection[int] | None = None,
    repeats: int = 5,
    share: bool = False,
) -> Executed:
    """Run a JAX function on the devices that a plan names, and time it.

    Args:
        plan: made for ``trace(function, *args, **kwargs)``; or the path of its plan.json.
        function: what was traced.
        args, kwargs: its arguments, with real arrays.
        weights: as for `trace`.
        repeats: timed iterations, after one that compiles and one to warm up.
        share: let several devices of the plan share one of JAX where there are too few.

    Raises:
        PlanError: the plan is malformed, a failure, or belongs to another graph.
        ExecutionError: JAX shows too few devices; the message says how to get more.
        ReadError: the function cannot be traced or cut.
    """
    from go_rl.plans.run import execute as run

    return run(Plan.of(plan), function, args, kwargs, weights=weights, repeats=repeats, share=share)
