"""Metrics, and splits of data."""

import numpy as np
import pytest

from go_rl.core import TrainingError
from go_rl.costs.learning.metrics import ape, mape, pair_accuracy, r_squared, rmse, top_k, within
from go_rl.costs.learning.splits import DataSplit, by_model, by_target, by_task, within_task

SECONDS = np.array([2.0, 1.0, 4.0, 10.0, 12.0])
KERNEL = np.array([7, 7, 7, 3, 3])


def test_mape():
    assert mape(np.array([1.1, 1.0]), np.array([1.0, 2.0])) == pytest.approx((10 + 50) / 2)


def test_ape_is_what_the_choices_lose():
    """The first kernel's choice takes 2 instead of 1, the second's the best of 10."""
    predicted = np.array([0.1, 0.2, 0.3, 1.0, 2.0])
    assert ape(predicted, SECONDS, KERNEL) == pytest.approx(100 * 1 / 11)
    assert ape(SECONDS, SECONDS, KERNEL) == 0.0


GROUP = np.array([0, 0, 0, 1, 1])


def test_pair_accuracy_counts_pairs_of_a_group():
    """Of the first group's three pairs two are in order, the second's only pair is not."""
    predicted = np.array([2.0, 3.0, 5.0, 9.0, 8.0])
    assert pair_accuracy(predicted, SECONDS, GROUP) == pytest.approx(2 / 4)
    assert pair_accuracy(SECONDS, SECONDS, GROUP) == 1.0
    assert np.isnan(pair_accuracy(SECONDS[:1], SECONDS[:1], GROUP[:1]))


def test_top_k_is_best_over_found():
    """Best times are 1 and 10; the programs predicted fastest take 2 and 12."""
    predicted = np.array([1.0, 3.0, 2.0, 9.0, 8.0])
    assert top_k(predicted, SECONDS, GROUP, 1) == pytest.approx(11 / 14)
    assert top_k(predicted, SECONDS, GROUP, 3) == 1.0


def test_rmse_within_and_r_squared():
    predicted, seconds = np.array([1.0, 2.2, 3.0]), np.array([1.0, 2.0, 4.0])
    assert rmse(predicted, seconds) == pytest.approx(np.sqrt((0.04 + 1) / 3))
    assert within(predicted, seconds, 0.05) == pytest.approx(100 / 3)
    assert within(predicted, seconds, 0.2) == pytest.approx(200 / 3)
    mean = 7 / 3
    spread = sum((x - mean) ** 2 for x in seconds)
    assert r_squared(predicted, seconds) == pytest.approx(1 - 1.04 / spread)
    assert np.isnan(r_squared(predicted, np.ones(3)))


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
