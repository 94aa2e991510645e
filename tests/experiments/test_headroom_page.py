"""The experiment on headroom: which method is the reference, and what enters."""

from __future__ import annotations

import math

import pytest

from experiments.learning.best_known import least_first
from experiments.learning.headroom import Run, headrooms, page, reference_method
from go_rl.graphs.zoo.best_known import BestEntry
from go_rl.graphs.zoo.problems import zoo_problem, zoo_problems

VALIDATION, TEST = "bifpn-d0.ring36.strict", "nasnet-mobile.ring16.strict"


def _entry(name):
    problem = zoo_problem(name)
    return BestEntry(name, problem.part, problem.family, "g", 1.0, 0.5, "annealing", 0, 1.0, "d")


KNOWN = {name: _entry(name) for name in (VALIDATION, TEST)}


def _run(problem, method, seed, value):
    return Run(problem, method, seed, value, 10, 3.0)


ROWS = [
    _run(VALIDATION, "linear-dp", 0, 1.3),
    _run(VALIDATION, "annealing", 0, 1.1),
    _run(VALIDATION, "metis", 0, math.inf),
    *(_run(TEST, "annealing", seed, value) for seed, value in enumerate((1.20, 1.21, 1.22))),
    *(_run(TEST, "linear-dp", seed, 1.05) for seed in range(3)),
]


def test_the_reference_is_chosen_on_validation_alone():
    assert reference_method("ring", ROWS) == "annealing"
    assert reference_method("ring", ROWS[3:]) is None


def test_the_room_is_from_the_median_reference_to_the_best_known():
    ((problem, found),) = headrooms("ring", ROWS, KNOWN)
    assert problem.name == TEST
    assert found.room == pytest.approx(math.log(1.21))
    assert found.enters


def test_the_page_counts_what_enters():
    text = page(ROWS, KNOWN)
    assert "## ring: reference annealing" in text
    assert "### test: 1 problems of 1 families enter; 1 of 79 measured" in text
    assert "| nasnet-mobile.ring16.strict | nasnet | 1210 | 1000 | 0.191 | " in text


def test_families_take_turns_and_the_fewest_seconds_come_first():
    problems = zoo_problems("test", "ring")
    spent = {problem.name: 0.0 for problem in problems} | {problems[0].name: 5.0}
    order = least_first(problems, spent)
    families = {problem.family for problem in problems}
    assert {problem.family for problem in order[: len(families)]} == families
    assert order[-1] == problems[0]
