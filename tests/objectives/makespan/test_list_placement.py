"""Placement by list scheduling: by hand, and against a plain twin."""

from __future__ import annotations

import numpy as np
import pytest
from reference.list_placement import plain_list_placement
from reference.step_problems import random_step, step_problem

from go_rl.core import OpKind, Problem
from go_rl.objectives.makespan.methods.list_placement import ListRules, place_in_order
from go_rl.objectives.makespan.units import MakespanUnits, makespan_units
from go_rl.objectives.makespan.workspace import MakespanWorkspace

NEVER_LEAVE = 1e9
BY_SCORE = 1e6


def units_of(problem: Problem) -> MakespanUnits:
    return makespan_units(MakespanWorkspace(problem))


def products(seconds: list[float], edges: list, devices: int = 2, **options) -> MakespanUnits:
    """Matrix products: each is a unit of its own."""
    kinds = [OpKind.MATMUL] * len(seconds)
    return units_of(step_problem(seconds, edges, devices, kinds=kinds, **options))


def placed(units: MakespanUnits, score, proposal, rules, room: float = np.inf) -> list[int]:
    """One plan."""
    one = ListRules(*(np.array([value], np.float64) for value in rules))
    capacity = np.full(len(units.seconds), room)
    scores = np.array([score], np.float64)
    return place_in_order(units, scores, np.array([proposal]), one, capacity)[0].tolist()


def test_an_attached_unit_stays_where_it_was_proposed():
    units = products([1.0, 1.0, 1.0], [])
    score = [0.0, 0.5, 1.0]
    assert placed(units, score, [1, 1, 1], (NEVER_LEAVE, 1.0, BY_SCORE)) == [1, 1, 1]
    assert placed(units, score, [1, 1, 1], (0.0, 1.0, BY_SCORE)) == [0, 1, 0]
    # The second would end at 2 beside the first, at 1 elsewhere: that gains less than 1.5.
    assert placed(units, score, [1, 1, 1], (1.5, 1.0, BY_SCORE)) == [1, 1, 0]


def test_a_link_carries_one_tensor_at_a_time():
    """Results of 3 s each are ready at 1 and 2, and both on the other device at 7, not at 5."""
    edges = [(0, 2, 3.0), (1, 2, 3.0)]
    proposal, score, rules = [0, 0, 0, 0], [0.0, 0.1, 0.9, 0.2], (3.0, 1.0, BY_SCORE)
    # On device 0 their reader ends at 9.5; on device 1 at 8, and 3 more is 11. (Side by side: 9.)
    units = products([1.0, 1.0, 1.0, 6.5], edges)
    assert placed(units, score, proposal, rules) == [0, 0, 0, 0]
    units = products([1.0, 1.0, 1.0, 8.5], edges)  # now 11.5 against 11
    assert placed(units, score, proposal, rules) == [0, 0, 1, 0]


def test_a_tensor_goes_to_a_device_once():
    """Two readers of one result on device 1: the second finds it there."""
    units = products([1.0, 1.0, 1.0], [(0, 1, 2.0), (0, 2, 2.0)])
    # Reader 1 is kept away (ends at 4); reader 2 ends at 2 beside its producer, else at 5.
    assert placed(units, [0.0, 0.1, 0.2], [0, 1, 1], (2.5, 1.0, BY_SCORE)) == [0, 1, 0]
    assert placed(units, [0.0, 0.1, 0.2], [0, 1, 1], (3.5, 1.0, BY_SCORE)) == [0, 1, 1]


def test_chronology_weighs_time_against_scores():
    """A chain of 6 s has low scores, a single unit of 1 s a high one: in time it comes second, and
    ends at 3 behind the chain's first; by score it comes last, and would end at 7."""
    units = products([2.0, 2.0, 2.0, 1.0], [(0, 1, 0.0), (1, 2, 0.0)])
    score, proposal = [0.0, 0.1, 0.2, 1.0], [0, 0, 0, 0]
    assert placed(units, score, proposal, (2.5, 1.0, BY_SCORE)) == [0, 0, 0, 1]
    assert placed(units, score, proposal, (2.5, 1.0, 0.0)) == [0, 0, 0, 0]


def test_without_room_a_unit_goes_where_most_is_left():
    units = products([1.0, 1.0], [], weights=[6.0, 6.0])
    assert placed(units, [0.0, 1.0], [0, 0], (NEVER_LEAVE, 1.0, BY_SCORE), 10.0) == [0, 1]
    assert placed(units, [0.0, 1.0], [0, 0], (NEVER_LEAVE, 1.0, BY_SCORE), 5.0) == [0, 1]


@pytest.mark.parametrize("seed", range(60))
def test_equals_the_plain_twin(seed):
    units = units_of(random_step(seed))
    rng = np.random.default_rng(seed)
    count, devices = units.num_units, len(units.seconds)
    plans = 3
    score = rng.random((plans, count)).round(1)
    proposal = rng.integers(devices, size=(plans, count))
    rules = ListRules(
        rng.exponential(size=plans) * rng.integers(2, size=plans),
        rng.choice([0.5, 1.0, 2.0], plans),
        rng.choice([0.0, 0.5, 4.0, BY_SCORE], plans),
    )
    capacity = rng.choice([np.inf, 3.0 * units.weight.max(initial=1.0)], devices)
    found = place_in_order(units, score, proposal, rules, capacity)
    for row in range(plans):
        mine = (rules.attachment[row], rules.caution[row], rules.chronology[row])
        expected = plain_list_placement(units, score[row], proposal[row], mine, capacity)
        assert found[row].tolist() == expected
