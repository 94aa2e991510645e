"""Plans of every objective on four topologies: the checker accepts them, at the twins' value."""

from reference.naive_checker import broken_rules, improves_only, value_of
from runner.suite import Suite

from go_rl.core import Plan, Problem, Status
from go_rl.verify.check_plan import check_plan

from ..random_problems import TOPOLOGIES, problem_on, quick_plan, random_graph

GRAPHS = 10_000
CLOSE = 1e-9
"""Relative difference of sums that are added up in another order."""


def trial(index: int) -> str | None:
    """One plan on the topology ``index % 4`` of graph ``index // 4``."""
    seed, which = divmod(index, len(TOPOLOGIES))
    problem = problem_on(TOPOLOGIES[which], random_graph(seed), seed)
    plan = quick_plan(problem, seed)
    return what_is_wrong(problem, Plan.from_json(plan.to_json()))


def what_is_wrong(problem: Problem, plan: Plan) -> str | None:
    """What of a product's plan does not hold, in words; None: everything does."""
    status, verdict = plan.evaluation.status, check_plan(plan, problem)
    if verdict.status is not status or status is Status.ILLEGAL:
        return f"{plan.optimizer} says {status}, the checker {verdict.sentence}"
    if not improves_only([point.seconds for point in plan.curve]):
        return f"{plan.optimizer}: the curve does not fall"
    if not status.ok:
        return None
    if broken := broken_rules(problem, plan):
        return f"{plan.optimizer}: accepted, but breaks {', '.join(sorted(broken))}"
    value = value_of(problem, plan)
    if not all(abs(v - value) <= CLOSE * value for v in (plan.value, verdict.value)):
        both = f"{plan.value!r} s, the checker {verdict.value!r}"
        return f"{plan.optimizer} says {both}; it is {value!r}"
    if not 0 <= plan.bound <= value * (1 + CLOSE):
        return f"{plan.optimizer}: the bound {plan.bound!r} is above {value!r}"
    if plan.optimal and plan.gap > 1e-6:
        return f"{plan.optimizer}: optimal with a gap of {plan.gap:.2g}"
    return None


SUITE = Suite(
    name="checked-plans",
    proves="the checker accepts the product's plans on ring, full, tree and host topologies, and "
    "their rules and values are those of independent twins",
    unit="plans",
    count=GRAPHS * len(TOPOLOGIES),
    trial=trial,
)
