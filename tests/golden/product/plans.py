"""Methods of go_rl and the plans that they make."""

from go_rl.compare import portfolio
from go_rl.core import Budget, Objective, Optimizer, Plan, Problem
from go_rl.verify.check_plan import check_plan

from ..fingerprint import Facts, digest, moments, short
from .problems import Setting, problem

METHODS = {
    "ring": (
        "greedy", "policy", "random", "annealing", "metis", "linear-dp",
        "ideal-dp", "exact", "unit-annealing", "order-search", "order-policy",
    ),
    "max-load": ("greedy", "dp", "local-search"),
    "latency": ("greedy", "local-search"),
    "makespan": (
        "default", "policy", "composed", "expert", "fusion-greedy", "hdp", "heft", "metis",
        "random", "annealing", "one-device", "dispatch-search", "layers-equal", "layers-by-speed",
        "fill-in-order",
    ),
}  # fmt: skip
"""Every method by objective, under the names that cases carry."""
AUTO = "auto"
"""The portfolio."""


def registered() -> set[str]:
    """Return the methods of all objectives that go_rl has, under the names that cases carry."""
    return {name for known in portfolio.METHODS.values() for name in known}


def plan_facts(setting: Setting, method: str, budget: tuple[int | None, float | None]) -> Facts:
    """Return a method's plan for a problem.

    Args:
        setting: the problem.
        method: one of `METHODS`, or `AUTO`.
        budget: samples and seconds; None: no limit.
    """
    given, limit = problem(setting), Budget(*budget)
    if method == AUTO:
        return facts_of(portfolio.run(given, AUTO, limit, SEED).best, given)
    return facts_of(_optimizer(setting.objective, method).optimize(given, limit, SEED), given)


SEED = 7
"""The one seed of all plans."""


def _optimizer(objective: str, method: str) -> Optimizer:
    return portfolio.METHODS[Objective(objective)][method]()


SIZES = ("link_bytes", "weight_bytes", "streamed_bytes", "peak_bytes")
"""Bytes that an evaluation tells of devices and links."""


def facts_of(plan: Plan, given: Problem) -> Facts:
    """Return the facts of a plan, and what the checker says of it."""
    copies = [(node, *devices) for node, devices in sorted(plan.replicas.items())]
    return {
        "status": str(plan.evaluation.status),
        "verdict": str(check_plan(plan, given).status),
        "decisions": digest(
            plan.device, [str(each) for each in copies], plan.priority, plan.fusion_group
        ),
        "value": short(plan.value),
        "bound": short(plan.bound),
        "busy": moments([plan.evaluation.device_seconds, plan.evaluation.link_seconds]),
        "bytes": moments(getattr(plan.evaluation, name) for name in SIZES),
        "optimal": bool(plan.optimal),
        "samples": plan.samples,
    }
