"""The metric by hand: what enters, what is closed, how sure that is."""

import math

import numpy as np
import pytest

from experiments.learning.headroom_measure import (
    Headroom,
    headroom_closed,
    headroom_difference,
    outcomes,
)
from go_rl.core import ProblemError

E = math.e


def _problem(name, family, room, noise=0.0):
    references = (E**room * (1 - noise), E**room, E**room * (1 + noise))
    return Headroom(name, family, references, 1.0)


def test_a_problem_enters_with_three_per_cent_and_three_seed_errors():
    assert _problem("a", "f", 0.031).enters
    assert not _problem("a", "f", 0.029).enters
    noisy = _problem("a", "f", 0.1, noise=0.06)
    assert noisy.seed_error == pytest.approx(0.06 / math.sqrt(3), rel=0.01)
    assert not noisy.enters
    assert _problem("a", "f", 0.11, noise=0.06).enters


def test_the_reference_is_the_median():
    assert Headroom("a", "f", (1.0, 9.0, 2.0), 1.0).reference == 2.0


def test_the_reference_closes_nothing_and_the_best_known_all():
    problems = [_problem("a", "f", 0.5), _problem("b", "g", 0.2), _problem("c", "g", 1.0)]
    reference = {p.name: (p.reference,) for p in problems}
    best = {p.name: (p.best, p.best) for p in problems}
    assert headroom_closed(problems, reference).share == pytest.approx(0.0)
    closed = headroom_closed(problems, best)
    assert (closed.share, closed.low, closed.high) == pytest.approx((1.0, 1.0, 1.0))
    assert (closed.problems, closed.families) == (3, 2)


def test_families_count_alike_however_many_problems_they_have():
    problems = [_problem("a", "f", 0.4), _problem("b", "g", 0.4), _problem("c", "g", 0.4)]
    halves = {p.name: (p.reference,) for p in problems} | {"a": (1.0,)}
    assert headroom_closed(problems, halves).share == pytest.approx(0.5)


def test_seeds_are_averaged_in_logarithms_and_worse_than_the_reference_is_negative():
    problems = [_problem("a", "f", 1.0)]
    assert headroom_closed(problems, {"a": (1.0, E)}).share == pytest.approx(0.5)
    assert headroom_closed(problems, {"a": (E**1.5,)}).share == pytest.approx(-0.5)
    assert headroom_closed(problems, {"a": (math.inf,)}).share == pytest.approx(-1.0)


def test_the_interval_is_over_families():
    problems = [_problem(str(i), f"f{i // 2}", 1.0) for i in range(12)]
    # Families close 0 or 1: six of them, half and half.
    plans = {p.name: (1.0 if int(p.name) % 4 < 2 else E,) for p in problems}
    closed = headroom_closed(problems, plans)
    assert closed.share == pytest.approx(0.5)
    # Binomial of six: 0.025 and 0.975 quantiles are 1/6 and 5/6.
    assert (closed.low, closed.high) == pytest.approx((1 / 6, 5 / 6))


def test_a_difference_is_paired_by_problem():
    rng = np.random.default_rng(0)
    problems = [_problem(str(i), f"f{i}", 1.0) for i in range(8)]
    rival = {p.name: (E ** rng.uniform(0.0, 1.0),) for p in problems}
    ours = {name: (t * E**-0.1,) for name, (t,) in rival.items()}
    ahead = headroom_difference(problems, ours, rival)
    assert (ahead.share, ahead.low, ahead.high) == pytest.approx((0.1, 0.1, 0.1))
    closed = headroom_closed(problems, ours)
    assert closed.high - closed.low > 0.2


def test_wins_ties_losses_and_failures_are_counted():
    problems = [_problem("a", "f", 0.0), _problem("b", "f", 0.5)]
    plans = {"a": (1.0, 1.0005, 1.1), "b": (1.0, math.inf)}
    counted = outcomes(problems, plans)
    assert (counted.wins, counted.ties, counted.losses, counted.failures) == (1, 2, 1, 1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Headroom("a", "f", (1.0,), 1.0), "two seeds"),
        (lambda: Headroom("a", "f", (1.0, math.inf), 1.0), "finite"),
        (lambda: headroom_closed([], {}), "no problem enters"),
        (lambda: headroom_closed([_problem("a", "f", 1.0)], {"b": (1.0,)}), "no plan for a"),
        (lambda: headroom_closed([_problem("a", "f", 0.0)], {"a": (1.0,)}), "nothing to win"),
        (lambda: _problem("a", "f", 1.0).gain(0.0), "seconds > 0"),
        (lambda: _problem("a", "f", 1.0).gain(math.nan), "seconds > 0"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ProblemError, match=message):
        call()
