"""The metric by hand: what enters, what is closed, how sure that is."""

import math

import pytest

from go_rl.compare.controls.headroom import (
    Headroom,
    entering,
    headroom_closed,
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
    assert [p.name for p in entering([_problem("a", "f", 0.0), _problem("b", "f", 0.5)])] == ["b"]


def test_the_reference_is_the_median():
    assert Headroom("a", "f", (1.0, 9.0, 2.0), 1.0).reference == 2.0


def test_seeds_are_averaged_in_logarithms_and_worse_than_the_reference_is_negative():
    problems = [_problem("a", "f", 1.0)]
    assert headroom_closed(problems, {"a": (1.0, E)}).share == pytest.approx(0.5)
    assert headroom_closed(problems, {"a": (E**1.5,)}).share == pytest.approx(-0.5)
    assert headroom_closed(problems, {"a": (math.inf,)}).share == pytest.approx(-1.0)


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
