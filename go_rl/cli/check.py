"""``go-rl check``: the independent judge's verdict on a plan."""

from __future__ import annotations

import math
from dataclasses import replace

from go_rl.api import problem_of
from go_rl.cli.configuration import Check
from go_rl.cli.console import console, print_json, working
from go_rl.cli.exit_codes import OK, REJECTED
from go_rl.cli.partition import read
from go_rl.core import Plan, Verdict, check_plan
from go_rl.core.evaluation import finite


def run_check(config: Check) -> int:
    """Run the command; returns the exit code."""
    plan = Plan.load(config.plan)
    source = config.source
    if not source.dim and not source.input:
        source = replace(source, dim=tuple(f"{name}={size}" for name, size in plan.dims.items()))
    with working(f"reading {source.model}"):
        verdict = check_plan(plan, problem_of(plan, read(source)))
    if config.json:
        print_json(_document(verdict))
    else:
        _print(verdict, plan)
    return OK if verdict.ok else REJECTED


def _document(verdict: Verdict) -> dict[str, object]:
    violations = [{"rule": v.rule, "message": v.message} for v in verdict.violations]
    return {
        "accepted": verdict.ok,
        "status": str(verdict.status),
        "value": finite(verdict.value),
        "violations": violations,
    }


def _print(verdict: Verdict, plan: Plan) -> None:
    out = console()
    word = "accepted" if verdict.ok else "rejected"
    out.print(f"{word}: {verdict.status.sentence}", markup=False, soft_wrap=True)
    for violation in verdict.violations:
        out.print(f"{violation.rule}: {violation.message}", markup=False, soft_wrap=True)
    if verdict.ok:
        bound = "no bound was proved"
        if math.isfinite(plan.gap):
            bound = f"proven bound {plan.bound:.6g} s, gap {100 * plan.gap:.2f} %"
        out.print(f"{verdict.value:.6g} s a step, {bound}", markup=False)
