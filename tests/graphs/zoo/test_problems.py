"""The named problems: unique, of real graphs and hardware, families on one side of the split."""

from __future__ import annotations

import pytest

from go_rl.core import ZooError
from go_rl.graphs.zoo import zoo_entry
from go_rl.graphs.zoo.problems import PARTS, zoo_problem, zoo_problems

OBJECTIVES = ("ring", "makespan")


def test_names_are_unique_and_lead_back():
    problems = zoo_problems()
    assert len({p.name for p in problems}) == len(problems)
    assert all(zoo_problem(p.name) == p for p in problems)
    assert sum(len(zoo_problems(part)) for part in PARTS) == len(problems)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_each_side_is_large_enough_and_families_stay_on_one(objective):
    families = {part: {p.family for p in zoo_problems(part, objective)} for part in PARTS}
    assert len(zoo_problems("test", objective)) >= 20
    assert len(families["test"]) >= 6
    assert not families["train"] & families["test"]
    assert not families["train"] & families["validation"]
    assert not families["test"] & families["validation"]


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_no_graph_is_on_two_sides_under_another_name(objective):
    digests = {
        part: {zoo_entry(p.graph).digest for p in zoo_problems(part, objective)} for part in PARTS
    }
    assert not digests["train"] & (digests["test"] | digests["validation"])
    assert not digests["test"] & digests["validation"]


def test_misspelt_names_are_answered_with_the_nearest():
    with pytest.raises(ZooError, match=r"did you mean 'nasnet-mobile\.ring36\.strict'"):
        zoo_problem("nasnet-mobil.ring36.strict")
    with pytest.raises(ZooError, match="unknown split 'tset'"):
        zoo_problems("tset")
