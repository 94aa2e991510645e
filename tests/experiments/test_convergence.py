"""The rule by which rivals of programs are trained until they stop improving."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.programs.convergence import converged, judging_tasks
from tests.costs.programs.made_up import made_up_programs


@pytest.mark.parametrize(
    ("errors", "length", "level"),
    [
        ({1: 50.0, 2: 40.0, 4: 30.0, 8: 29.9, 16: 1.0}, 8, True),  # 0.3 % less is level
        ({1: 50.0, 2: 60.0, 4: 1.0}, 1, True),  # worse is level; the shorter one is kept
        ({1: 50.0, 2: 40.0, 4: 30.0, 8: 20.0, 16: 10.0}, 16, False),  # no longer one is allowed
    ],
)
def test_lengths_are_doubled_until_the_error_is_level(errors, length, level):
    made = []

    def fit(steps: int) -> int:
        made.append(steps)
        return steps

    found = converged(fit, errors.__getitem__, 1, 16)
    assert (found.best, found.length, found.level) == (length, length, level)
    assert found.errors == tuple(errors[each] for each in made)
    assert made == [2**i for i in range(len(made))]


def test_tasks_that_judge_are_not_learned_from():
    learned, judges = judging_tasks(made_up_programs(160, 20), 0)
    assert not set(learned.inputs.task.tolist()) & set(judges.inputs.task.tolist())
    assert len(np.unique(judges.inputs.task)) == 2
