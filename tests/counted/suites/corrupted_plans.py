"""Corrupted plans: refused with one of our errors or a verdict, or legal after all, and worth what
they say."""

import json
import tempfile
from pathlib import Path

import numpy as np
from reference.naive_checker import broken_rules, value_of
from runner.suite import Suite

from go_rl.core import Plan, PlanError, Problem
from go_rl.verify.check_plan import check_plan

from ..corruptions import CORRUPTIONS, Corruption, corrupted
from ..random_problems import TOPOLOGIES, problem_on, quick_plan, random_graph

COUNT = 3_000
VALUE_TOLERANCE = 1e-6
"""What docs/plan.md allows between a plan's value and the checker's."""


def trial(index: int) -> str | None:
    """Corrupt a plan that the checker accepts, in the way ``index`` says."""
    problem, plan = legal_plan(index)
    corruption = CORRUPTIONS[index % len(CORRUPTIONS)]
    document = json.loads(json.dumps(plan.to_json()))
    text = corrupted(corruption, np.random.default_rng((index, 1)), document)
    name = corruption.apply.__name__
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "plan.json"
        path.write_text(text)
        wrong = what_is_wrong(problem, path, corruption)
    return None if wrong is None else f"{name} of a plan for {problem.objective}: {wrong}"


def legal_plan(index: int) -> tuple[Problem, Plan]:
    """The first plan without a failure, of graphs that this index alone draws."""
    for seed in range(index, index + 50 * COUNT, COUNT):
        topology = TOPOLOGIES[(index // len(CORRUPTIONS)) % len(TOPOLOGIES)]
        problem = problem_on(topology, random_graph(10**6 + seed), seed)
        plan = quick_plan(problem, seed)
        if plan.evaluation.status.ok and plan.value > 0:
            return problem, plan
    raise AssertionError("no plan in fifty problems")


def what_is_wrong(problem: Problem, path: Path, corruption: Corruption) -> str | None:
    """What the checker accepts and should not; other errors than ours pass through."""
    try:
        plan = Plan.load(path)
        verdict = check_plan(plan, problem)
    except PlanError:
        return None
    if not verdict.ok:
        return None
    if corruption.never:
        return "accepted"
    if broken := broken_rules(problem, plan):
        return f"accepted, but breaks {', '.join(sorted(broken))}"
    value = value_of(problem, plan)
    if not abs(plan.value - value) <= VALUE_TOLERANCE * value * (1 + 1e-6):
        return f"accepted at {plan.value!r} s; it is {value!r}"
    if not 0 <= plan.bound <= value * (1 + 1e-6):
        return f"accepted with a bound of {plan.bound!r}; its value is {value!r}"
    return None


SUITE = Suite(
    name="corrupted-plans",
    proves="a plan corrupted in one of many ways is refused, or is legal after all at the value "
    "that it states",
    unit="plans",
    count=COUNT,
    trial=trial,
)
