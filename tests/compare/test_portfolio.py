"""The portfolio: never worse than the heuristic, clear about names, done when the gap is closed."""

from dataclasses import replace

import numpy as np
import pytest
from reference.boxed_problems import random_problem
from reference.layered import layered_ring
from reference.random_rings import random_ring
from reference.small_rings import ring_problem

from go_rl.compare.portfolio import METHODS, methods_for, run
from go_rl.core import (
    Budget,
    Device,
    Objective,
    Optimizer,
    Problem,
    SearchError,
    Status,
)
from go_rl.objectives.methods import Greedy
from go_rl.verify.check_plan import check_plan

FEW = Budget(samples=40)
BOXED = (Objective.MAX_LOAD, Objective.LATENCY)


def chain(nodes: int = 6, chips: int = 3, **options) -> Problem:
    edges = [(i, i + 1) for i in range(nodes - 1)]
    return ring_problem(nodes, edges, chips, options.pop("rules", "relay"), **options)


@pytest.mark.parametrize("seed", range(12))
def test_the_best_plan_is_legal_and_never_worse_than_the_heuristic(seed):
    problem = random_ring(seed, 10, 4)
    result = run(problem, budget=FEW, seed=seed)
    heuristic = Greedy().optimize(problem, FEW, seed)
    assert result.plans[0].optimizer == "greedy"
    assert result.plans[0].value == heuristic.value
    assert result.best.value <= heuristic.value
    assert result.best.value == min(p.value for p in result.plans)
    assert check_plan(result.best, problem).status is result.best.evaluation.status
    if result.best.evaluation.status.ok:
        assert result.bound <= result.best.value
        assert {p.bound for p in result.plans} == {result.bound}


@pytest.mark.parametrize("objective", BOXED)
@pytest.mark.parametrize("seed", [0, 3, 4, 5])
def test_the_other_objectives_too(objective, seed):
    problem = random_problem(seed, objective, 8, 3)
    result = run(problem, budget=FEW)
    assert result.best.value <= result.plans[0].value
    assert check_plan(result.best, problem).status is result.best.evaluation.status


def test_no_room_is_a_status_not_an_exception():
    problem = random_problem(0, Objective.MAX_LOAD, 6, 2)
    chips = (Device("small", 1e12, 10.0, 1e12),) * 2
    problem = replace(
        problem,
        hardware=replace(problem.hardware, devices=chips),
        seconds=np.ones((1, 6)),
        weight_bytes=np.full(6, 5.0),
        memory=True,
        fixed={},
    )
    result = run(problem, budget=FEW)
    assert result.best.evaluation.status in (Status.GAVE_UP, Status.INFEASIBLE)
    assert np.isnan(result.improvement(result.best))


def test_auto_stops_when_the_gap_is_closed():
    """Six equal nodes in a row fill three chips perfectly: the heuristic is proved optimal."""
    reported: list[str] = []
    result = run(chain(memory=False), budget=FEW, report=reported.append)
    assert [p.optimizer for p in result.plans] == ["greedy"]
    assert "greedy" in reported
    assert result.best.optimal
    assert result.best.value == result.bound == 2.0


@pytest.mark.parametrize("method", ["policy", "random", "annealing", "metis", "linear-dp"])
def test_no_method_draws_on_after_a_proved_optimum(method):
    plan = run(chain(memory=False), method, Budget(samples=500)).plans[-1]
    assert (plan.value, plan.bound, plan.optimal) == (2.0, 2.0, True)
    assert plan.samples <= 16
    assert plan.to_json()["optimal"] is True


@pytest.mark.slow
def test_auto_asks_the_policy_where_dynamic_programming_leaves_a_gap():
    result = run(layered_ring(1, 24, 4, "strict"), budget=Budget(samples=400))
    names = [p.optimizer for p in result.plans]
    assert names[:4] == ["greedy", "ideal-dp", "linear-dp", "order-policy"]
    assert "policy" not in names  # the orders policy asks no further one
    assert result.best.gap > 1e-3


def test_auto_classical_is_auto_without_the_policy():
    problem = layered_ring(1, 24, 4, "strict")
    names = [p.optimizer for p in run(problem, "auto-classical", FEW).plans]
    assert names[:4] == ["greedy", "ideal-dp", "linear-dp", "order-search"]
    assert "policy" not in names
    with pytest.raises(SearchError, match="'auto-classical' has none"):
        run(problem, "auto-classical", FEW, control="blind")


def test_one_method_runs_after_the_heuristic_and_greedy_only_once():
    assert [p.optimizer for p in run(chain(), "metis", FEW).plans] == ["greedy", "metis"]
    assert [p.optimizer for p in run(chain(), "greedy", FEW).plans] == ["greedy"]


@pytest.mark.parametrize("objective", list(Objective))
def test_methods_of_an_objective_exist(objective):
    boxed = objective is not Objective.RING
    problem = random_problem(0, objective, 3, 2) if boxed else chain()
    assert set(methods_for(problem)) == set(METHODS[objective])
    assert all(isinstance(make(), Optimizer) for make in METHODS[objective].values())
    assert methods_for(problem)[0] in ("greedy", "default")


def test_an_unknown_method_brings_the_nearest_name():
    with pytest.raises(SearchError, match=r"unknown method 'anealing'; did you mean 'annealing'\?"):
        run(chain(), "anealing", FEW)


@pytest.mark.parametrize(
    ("objective", "method"),
    [(Objective.RING, "dp"), (Objective.RING, "composed"), (Objective.MAX_LOAD, "metis"),
     (Objective.LATENCY, "dp"), (Objective.LATENCY, "exact")],
)  # fmt: skip
def test_a_method_of_another_objective_is_refused_with_those_that_work(objective, method):
    boxed = objective is not Objective.RING
    problem = random_problem(0, objective, 3, 2) if boxed else chain()
    with pytest.raises(SearchError, match=f"method '{method}' cannot work on objective") as error:
        run(problem, method, FEW)
    assert all(name in str(error.value) for name in methods_for(problem))
