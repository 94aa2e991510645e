"""Methods stopped early: the best so far only improves, and budgets in seconds are kept."""

import time
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from reference.naive_checker import improves_only
from runner.suite import Suite

from go_rl.compare.portfolio import METHODS
from go_rl.compare.portfolio.portfolio import compile_methods, run
from go_rl.core import Budget, Objective, Plan, Problem
from go_rl.verify.check_plan import check_plan

from ..random_problems import TOPOLOGIES, problem_on, random_graph

PROBLEMS = 200
RUNS = 3
BUDGETS = (0.3, 0.5, 1.0)
"""Seconds."""
LATE = 1.1
"""Share of the budget that may be used."""
START_SECONDS = 0.1
"""Beside it: what comes before a method's clock and after it, on a machine that others use, too."""
ATTEMPTS = 4
"""A run that is late is run again: others may have had the processor."""
AUTO = "auto"
LEARNING = ("policy", "hdp")
"""Methods with networks, compiled for the size of a graph before the clock starts."""
METHODS_OF = {
    Objective.RING: ("random", "annealing", "linear-dp", "ideal-dp", "exact", "policy", AUTO),
    Objective.MAX_LOAD: ("dp", "local-search", AUTO),
    Objective.LATENCY: ("greedy", "local-search", AUTO),
    Objective.MAKESPAN: ("random", "annealing", "composed", "heft", "hdp", "policy", AUTO),
}


def trial(index: int) -> str | None:
    """Three methods, or budgets, on one problem of up to 200 nodes."""
    topology = TOPOLOGIES[index % len(TOPOLOGIES)]
    problem = problem_on(topology, random_graph(2 * 10**6 + index, 200), index)
    problem = replace(problem, memory=False, fixed=problem.fixed if topology == "full" else {})
    rng = np.random.default_rng(index)
    compile_once(problem.objective)
    names = rng.permutation(METHODS_OF[problem.objective])[:RUNS].tolist()
    budgets = rng.choice(BUDGETS, RUNS).tolist()
    wrong = [
        f"{name} for {seconds:g} s: {each}"
        for name, seconds in zip(names, budgets, strict=True)
        for each in broken_promises(problem, name, seconds)
    ]
    nodes = problem.graph.num_nodes
    return f"{problem.objective}, {nodes} nodes: {'; '.join(wrong)}" if wrong else None


def broken_promises(problem: Problem, name: str, seconds: float) -> Iterator[str]:
    """Run a method for some seconds, and say what it did not keep."""
    warm_up(problem, name)
    late = []
    for _ in range(ATTEMPTS):
        started = time.perf_counter()
        plan = solve(problem, name, Budget(seconds=seconds))
        took = time.perf_counter() - started
        yield from curve_errors(plan)
        if check_plan(plan, problem).status is not plan.evaluation.status:
            yield f"says {plan.evaluation.status}, the checker {check_plan(plan, problem).sentence}"
        if took <= LATE * seconds + START_SECONDS:
            return
        late.append(took)
    yield "took " + ", ".join(f"{took:.2f} s" for took in late)


@cache
def compile_once(objective: Objective) -> None:
    """Compile what all methods of an objective share."""
    compile_methods(objective)


def warm_up(problem: Problem, name: str) -> None:
    """Compile, and build what methods share."""
    if name in LEARNING:
        optimizer_of(problem, name).prepare(problem)
    solve(problem, name, Budget(samples=2, seconds=1.0))


def solve(problem: Problem, name: str, budget: Budget) -> Plan:
    """The plan of a method, or the best of ``auto``."""
    if name == AUTO:
        return run(problem, budget=budget).best
    return optimizer_of(problem, name).optimize(problem, budget, 0)


def optimizer_of(problem: Problem, name: str) -> Any:
    """A method by its name."""
    return METHODS[problem.objective][name]()


def curve_errors(plan: Plan) -> Iterator[str]:
    """What is wrong with a curve of the best so far."""
    values = [point.seconds for point in plan.curve]
    samples = [point.samples for point in plan.curve]
    walls = [point.wall_seconds for point in plan.curve]
    if not improves_only(values):
        yield "the best so far got worse"
    if samples != sorted(samples) or walls != sorted(walls):
        yield "the curve goes back"
    if plan.evaluation.status.ok and not np.isclose(values[-1], plan.value, rtol=1e-9):
        yield f"the curve ends at {values[-1]!r}, the plan is worth {plan.value!r}"


SUITE = Suite(
    name="anytime",
    proves="the best plan so far only improves, and a budget in seconds is kept within 10 % and "
    f"{START_SECONDS:g} s",
    unit="runs",
    count=PROBLEMS,
    each=RUNS,
    trial=trial,
)
