"""More samples never end worse under ``auto``: a longer run begins with the shorter one's plans."""

from dataclasses import replace

import numpy as np
import pytest
from reference.layered import layered_ring
from reference.random_rings import random_ring
from reference.small_rings import ring_problem
from reference.step_networks import operators, priced

from go_rl.compare.portfolio import run
from go_rl.compare.portfolio.rounds import HEAVIEST, Portion, Rounds, first_round, joined
from go_rl.core import Budget, CurvePoint, Plan, Problem, Progress
from go_rl.objectives.common.kit import Turn

PROBLEMS = {
    "layers, strict": lambda: layered_ring(1, 20, 4, "strict"),
    "layers, replicate": lambda: layered_ring(3, 30, 6, "replicate"),
    "random ring": lambda: random_ring(5, 16, 4),
    "operators, 2 devices": lambda: priced(operators(1), "p100x2"),
    "operators, 4 devices": lambda: priced(operators(3), "p100x4"),
}


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", PROBLEMS)
def test_more_samples_never_end_worse(name, seed):
    problem = PROBLEMS[name]()
    values = [
        run(problem, budget=Budget(samples=samples), seed=seed).best.value
        for samples in (25, 50, 100, 200)
    ]
    assert values == sorted(values, reverse=True)


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_longer_run_begins_with_the_shorter_one(name):
    """Whatever the last turn of the short run found, the long run found at the same sample."""
    problem = PROBLEMS[name]()
    short, long = (run(problem, budget=Budget(samples=n), seed=3) for n in (150, 300))
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


def test_what_betters_the_plan_gets_more_and_nothing_less_than_a_little():
    rounds = Rounds(turns(0.5, 0.5), Budget(samples=80), problem())
    taken = portions(rounds, 12, better="b")
    assert "".join(p.turn.name for p in taken) == "ab" + 5 * "ba"
    pairs = [sorted(taken[i : i + 2], key=lambda p: p.turn.name) for i in range(0, 12, 2)]
    ratios = [(b.budget.samples or 0) / (a.budget.samples or 1) for a, b in pairs]
    assert ratios[:3] == pytest.approx([1.0, 4.0, 8.0], rel=0.05)
    assert ratios[-1] == pytest.approx(HEAVIEST / taken[0].turn.lightest, rel=0.05)


def test_a_method_that_ends_early_is_left_out_and_none_left_is_the_end():
    rounds = Rounds(turns(0.5, 0.5), Budget(samples=8), problem())
    first, second = rounds.next(), rounds.next()
    assert first is not None
    assert second is not None
    rounds.close(first, found(first.budget.samples or 0), True)
    rounds.close(second, found(1), True)
    (alone,) = portions(rounds, 1)
    assert (alone.turn.name, alone.budget.samples) == ("a", 16)
    last = rounds.next()
    assert last is not None
    rounds.close(last, found(1), False)
    assert rounds.next() is None


def test_a_method_that_needs_longer_rounds_gets_them_where_seconds_count():
    slow = Turn("slow", 1.0, least=lambda problem: 5.0)
    portion = Rounds((slow,), Budget(seconds=1.0), problem()).next()
    assert portion is not None
    assert (portion.round, portion.budget.seconds) == (3, 8.0)


def test_turns_with_a_pace_are_counted_in_samples():
    """Half of a second, at 4,000 samples a second on one node, on four nodes: 500."""
    paced, timed = Turn("paced", 0.5, pace=4000.0), Turn("timed", 0.5)
    budgets = [p.budget for p in (Rounds((paced, timed), Budget(seconds=1.0), problem())._round())]
    assert budgets == [Budget(samples=500), Budget(seconds=0.5)]
    both = Rounds((paced,), Budget(samples=100, seconds=1.0), problem()).next()
    assert both is not None
    assert both.budget == Budget(samples=100)


def test_a_portion_keeps_to_what_is_left():
    portion = Portion(turns(1.0)[0], 0, Budget(samples=10, seconds=1e9))
    progress = Progress(Budget(samples=100))
    assert portion.within(progress) == Budget(samples=10, seconds=1e9)
    progress.samples = 97
    assert portion.within(progress).samples == 3


def test_the_first_round_counts_what_the_budget_counts_and_grows_with_the_graph():
    assert first_round(problem(), Budget(samples=5)).seconds is None
    small, large = (first_round(problem(n), Budget(seconds=5.0)).seconds for n in (4, 12_000))
    assert (small, large) == (1.0, 3.0)


def test_seeds_differ_from_round_to_round_and_the_first_is_the_users():
    seeds = [Portion(turns(1.0)[0], r, Budget(1)).seed(7) for r in range(4)]
    assert seeds[0] == 7
    assert len(set(seeds)) == 4


def test_joined_plans_count_everything_and_keep_the_best():
    plan = joined(found(10, 3.0, 1.0), found(5, 2.0, 2.0))
    assert (plan.value, plan.samples, plan.wall_seconds) == (2.0, 15, 3.0)
    points = [(p.samples, p.wall_seconds, p.seconds) for p in plan.curve]
    assert points == [(1, 0.0, 4.0), (10, 1.0, 3.0), (15, 3.0, 2.0)]
    assert np.isclose(joined(found(10, 2.0), found(5, 3.0)).value, 2.0)
