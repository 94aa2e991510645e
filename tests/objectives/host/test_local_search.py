"""Local search on max-load and latency, and their heuristics: legal on any mix, optimal on tiny
problems, honest about failure."""

from dataclasses import replace

import numpy as np
import pytest
from reference.boxed_problems import random_problem
from reference.host_objectives import latency, max_load, optimum

from go_rl.core import Budget, Objective, Problem, SearchError, Status, load_hardware
from go_rl.objectives.host.methods.landscapes import LatencyLandscape, MaxLoadLandscape
from go_rl.objectives.host.methods.local_search import LocalSearch, warm_up
from go_rl.objectives.host.workspace import HostWorkspace
from go_rl.verify.check_plan import check_plan

MAX_LOAD, LATENCY = Objective.MAX_LOAD, Objective.LATENCY
SAMPLES = {MAX_LOAD: 30_000, LATENCY: 20_000}
"""Enough for the annealer to exhaust a six-node problem."""
JUDGE = {MAX_LOAD: max_load, LATENCY: latency}
both = pytest.mark.parametrize("objective", SAMPLES)


def tiny(seed: int, objective: Objective = MAX_LOAD) -> Problem:
    return random_problem(seed, objective, 2 + seed % 5, 1 + seed % 3)


def found(problem: Problem, seed: int = 0):
    return LocalSearch().optimize(problem, Budget(samples=SAMPLES[problem.objective]), seed)


@both
@pytest.mark.parametrize("seed", range(12))
def test_tiny_problems_are_solved_and_bounded(seed, objective):
    problem = tiny(seed, objective)
    best = optimum(problem, JUDGE[objective])
    plan = found(problem)
    if np.isinf(best):
        assert plan.evaluation.status in (Status.INFEASIBLE, Status.GAVE_UP)
        assert plan.value == float("inf")
        return
    assert plan.evaluation.status is Status.OK
    assert plan.value == pytest.approx(best, rel=1e-9)
    assert HostWorkspace(problem).bound <= best * (1 + 1e-9)
    assert plan.bound <= best * (1 + 1e-9)
    assert plan.curve[-1].seconds == pytest.approx(best, rel=1e-9)
    check_plan(plan, problem)


def test_the_ring_is_refused():
    assert LocalSearch().name == "local-search"
    problem = replace(tiny(0), hardware=load_hardware("ring4"), objective=Objective.RING, fixed={})
    with pytest.raises(SearchError, match="objective max-load or latency"):
        LocalSearch().optimize(problem, Budget(samples=30_000), 0)


@both
def test_annealing_is_compiled_before_the_budget_begins(objective, monkeypatch):
    kind = {MAX_LOAD: MaxLoadLandscape, LATENCY: LatencyLandscape}[objective]
    anneal, annealed = kind.anneal, []

    def counted(*arguments):
        annealed.append(arguments)
        return anneal(*arguments)

    monkeypatch.setattr(kind, "anneal", counted)
    warm_up.cache_clear()
    LocalSearch().optimize(tiny(0, objective), Budget(samples=1), 0)  # too few to anneal itself
    assert annealed
