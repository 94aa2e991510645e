"""Splits: no row twice, tasks whole, tasks of a held-out network held out."""

import numpy as np
import pytest

from go_rl.core import TrainingError
from go_rl.costs.learning.splits import DataSplit, by_model, by_target, by_task, within_task

TASK = np.repeat(np.arange(30), 10)
TARGET = np.tile([0, 1], 150)


def _parts(split: DataSplit) -> list[np.ndarray]:
    return [split.train, split.validation, split.test, split.held_out, split.adapt]


def test_within_task_divides_each():
    split = within_task(TASK)
    for number in range(30):
        assert (TASK[split.train] == number).sum() == 8
        assert (TASK[split.test] == number).sum() == 1


def test_by_task_keeps_tasks_whole():
    split = by_task(TASK)
    assert [len(np.unique(TASK[part])) for part in _parts(split)[:3]] == [24, 3, 3]


def test_by_target_judges_other_tasks_than_it_learns_from():
    split = by_target(TASK, TARGET, 1)
    assert (TARGET[split.train] == 0).all()
    assert (TARGET[split.held_out] == 1).all()
    assert not set(TASK[split.held_out]) & set(TASK[split.train])
    assert set(TASK[split.adapt]) == set(TASK[split.train])


def test_by_model_holds_out_shared_tasks():
    networks = [("a", "b"), ("b",), ("c", "a")] * 10
    split = by_model(TASK, networks, ("a",))
    assert set(TASK[split.held_out] % 3) == {0, 2}


@pytest.mark.parametrize(
    ("split", "message"),
    [
        (lambda: by_task(np.zeros(3, np.int64)), "split by_task: its part 'validation' is empty"),
        (lambda: by_target(TASK, TARGET, 2), "target 2 has no measurements"),
        (lambda: by_target(TASK, np.ones(300, np.int64), 1), "no other target"),
        (lambda: by_model(TASK, [("resnet50",)] * 30, ("resnet",)), "did you mean 'resnet50'"),
    ],
)
def test_bad_input(split, message):
    with pytest.raises(TrainingError, match=message):
        split()
