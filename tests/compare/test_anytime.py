"""More samples never end worse under ``auto``: a longer run begins with the shorter one's plans."""

from dataclasses import replace

import pytest
from reference.layered import layered_ring
from reference.random_rings import random_ring
from reference.small_rings import ring_problem
from reference.step_networks import operators, priced

from go_rl.compare.portfolio import run
from go_rl.compare.portfolio.rounds import Portion, Rounds
from go_rl.core import Budget, CurvePoint, Plan, Problem
from go_rl.objectives.common.kit import Turn

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
