"""`plan_timeline`: the timeline of a plan that the checker's rules accept."""

from __future__ import annotations

from go_rl.core import Plan, PlanError, Problem
from go_rl.objectives.makespan.simulate.timeline import Timeline, timeline_of
from go_rl.verify.check_plan import check_belongs
from go_rl.verify.kernel_rules import legal_kernels
from go_rl.verify.rules import legal


def plan_timeline(problem: Problem, plan: Plan) -> Timeline:
    """Replay a plan, which may exceed the memory, and return its timeline.

    Raises:
        PlanError: the objective is not makespan, or the plan is of another problem or illegal.
    """
    check_belongs(plan, problem)
    if why := replay_obstacle(problem, plan):
        raise PlanError(f"{problem.graph.name}: {why}")
    return timeline_of(problem, plan.decisions)


def replay_obstacle(problem: Problem, plan: Plan) -> str:
    """Return the sentence why a plan for makespan cannot be replayed: the first rule that it
    breaks, memory aside; empty if it can be."""
    broken = [v for v in legal(problem, plan.device, plan.replicas) if v.status != "out-of-memory"]
    broken += legal_kernels(problem, plan.device, plan.priority, plan.fusion_group)
    return f"the plan breaks {broken[0].rule}: {broken[0].message}" if broken else ""
