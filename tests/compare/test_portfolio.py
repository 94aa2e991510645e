"""The portfolio: never worse than the heuristic, nor with more samples; clear about names."""

from dataclasses import replace

import numpy as np
import pytest
from reference.boxed_problems import random_problem
from reference.layered import layered_ring
from reference.random_rings import random_ring
from reference.small_rings import ring_problem
from reference.step_networks import operators, priced

from go_rl.compare.portfolio import METHODS, methods_for, run
from go_rl.compare.portfolio.rounds import Portion, Rounds
from go_rl.core import (
    Budget,
    CurvePoint,
    Device,
    Objective,
    Optimizer,
    Plan,
    Problem,
    SearchError,
    Status,
)
from go_rl.objectives.common.kit import Turn
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
    assert "nan" not in repr(result)
    assert "inf s" not in repr(result)


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


PROBLEMS = {
    "layers, strict": lambda: layered_ring(1, 20, 4, "strict"),
    "random ring": lambda: random_ring(5, 16, 4),
    "operators, 4 devices": lambda: priced(operators(3), "p100x4"),
}


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", PROBLEMS)
def test_more_samples_never_end_worse(name, seed):
    problem = PROBLEMS[name]()
    values = [
        run(problem, budget=Budget(samples=samples), seed=seed).best.value
        for samples in (25, 50, 100)
    ]
    assert values == sorted(values, reverse=True)


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_longer_run_begins_with_the_shorter_one(name):
    """Whatever the last turn of the short run found, the long run found at the same sample."""
    problem = PROBLEMS[name]()
    short, long = (run(problem, budget=Budget(samples=n), seed=3) for n in (60, 120))
    for plan in short.plans:
        twin = next(p for p in long.plans if p.optimizer == plan.optimizer)
        assert same(plan, twin)


def same(short: Plan, long: Plan) -> bool:
    """Equal improvements as far as the shorter curve goes, whenever they were found."""
    pairs = zip(short.curve, long.curve, strict=False)
    return len(long.curve) >= len(short.curve) and all(
        (a.samples, a.seconds) == (b.samples, b.seconds) for a, b in pairs
    )


def turns(*shares: float) -> tuple[Turn, ...]:
    return tuple(Turn(name, share) for name, share in zip("abcd", shares, strict=False))


def found(samples: int, value: float = 2.0, seconds: float = 0.0) -> Plan:
    plan = run(ring_problem(2, [(0, 1)], 2, "relay", memory=False), "greedy", Budget(1)).best
    evaluation = replace(plan.evaluation, seconds=value)
    curve = (CurvePoint(1, 0.0, value + 1.0), CurvePoint(samples, seconds, value))
    return replace(
        plan, evaluation=evaluation, samples=samples, wall_seconds=seconds, curve=curve, bound=0.5
    )


def portions(rounds: Rounds, count: int, better: str = "") -> list[Portion]:
    """The next portions, each used in full; those of a method named ``better`` help."""
    taken: list[Portion] = []
    for _ in range(count):
        portion = rounds.next()
        assert portion is not None
        rounds.close(portion, found(portion.budget.samples or 1), portion.turn.name == better)
        taken.append(portion)
    return taken


def problem(nodes: int = 4) -> Problem:
    return ring_problem(nodes, [(i, i + 1) for i in range(nodes - 1)], 2, "relay")


def test_rounds_double_whatever_the_budget():
    rounds = Rounds(turns(0.25, 0.75), Budget(samples=8), problem())
    sizes = [(p.turn.name, p.round, p.budget.samples) for p in portions(rounds, 6)]
    assert sizes == [("a", 0, 2), ("b", 0, 6), ("a", 1, 4), ("b", 1, 12), ("a", 2, 8), ("b", 2, 24)]


def test_seeds_differ_from_round_to_round_and_the_first_is_the_users():
    seeds = [Portion(turns(1.0)[0], r, Budget(1)).seed(7) for r in range(4)]
    assert seeds[0] == 7
    assert len(set(seeds)) == 4
