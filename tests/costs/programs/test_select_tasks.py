"""KMeans task sampling, CDMPP's algorithm 1."""

import numpy as np
import pytest

from go_rl.core import TrainingError
from go_rl.costs.programs.learn.choose_programs import program_features, select_tasks
from tests.costs.programs.made_up import made_up_programs


def test_one_task_of_each_cluster_the_largest_first():
    """Three heaps of 5, 3 and 2 tasks; of each, the task nearest to the middle is chosen."""
    place = np.array([0.0, 1, 2, 3, 4, 100, 101, 102, 200, 201])
    features = np.repeat(place, 2)[:, None]
    task = np.repeat(np.arange(10), 2)
    chosen = select_tasks(features, task, 3)
    assert chosen.tolist()[:2] == [2, 6]
    assert chosen[2] in (8, 9)


def test_all_tasks_are_chosen_once():
    task = np.arange(6)
    features = np.random.default_rng(0).random((6, 3))
    assert sorted(select_tasks(features, task, 6).tolist()) == list(range(6))


def test_same_seed_same_choice():
    inputs = made_up_programs().inputs
    features = program_features(inputs)
    first, again = (select_tasks(features, inputs.task, 5, seed=3) for _ in range(2))
    assert np.array_equal(first, again)


@pytest.mark.parametrize("count", [0, 7])
def test_more_tasks_than_there_are(count):
    with pytest.raises(TrainingError, match=f"{count} tasks cannot be chosen of 6"):
        select_tasks(np.zeros((6, 1)), np.arange(6), count)
