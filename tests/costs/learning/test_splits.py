"""Splits: no row twice, tasks whole, tasks of a held-out network held out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from go_rl.core import TrainingError
from go_rl.costs.learning.splits import DataSplit, by_model, by_target, by_task, within_task

TASK = np.repeat(np.arange(30), 10)
TARGET = np.tile([0, 1], 150)


def _parts(split: DataSplit) -> list[np.ndarray]:
    return [split.train, split.validation, split.test, split.held_out, split.adapt]


@given(seed=st.integers(0, 50))
def test_parts_are_disjoint(seed):
    networks = [("a", "b")] * 3 + [("b",)] * 3 + [("c",)] * 24
    for split in (
        within_task(TASK, seed), by_task(TASK, seed), by_target(TASK, TARGET, 1, seed),
        by_model(TASK, networks, ("a",), seed),
    ):  # fmt: skip
        rows = np.concatenate(_parts(split))
        assert len(np.unique(rows)) == len(rows)


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
