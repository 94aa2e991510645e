"""Pruning of measured programs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from experiments.programs.pruning import PruneRules, kernel_shape, prune, task_weights
from go_rl.core import TrainingError
from go_rl.costs.programs.workloads import TensorTask
from tests.costs.programs.with_nests import with_nests_and_traces


def test_planted_rows_are_pruned_by_their_rules():
    """Of 16 programs one is invalid, one slow, and those of the lighter of two tasks alike go."""
    planted = with_nests_and_traces(16, 4)
    group = planted.inputs.task * 2 + planted.inputs.target
    seconds = np.ones(16)
    seconds[0] = np.nan
    seconds[1] = 100.0
    assert (group == group[1]).sum() == 2
    tasks = (
        TensorTask("matmul", (1, 64, 64, 64)), TensorTask("matmul", (1, 256, 64, 64)),
        TensorTask("matmul", (1, 63, 64, 64)), TensorTask("softmax", (8, 8)),
    )  # fmt: skip
    planted = replace(planted, seconds=seconds, inputs=replace(planted.inputs, tasks=tasks))
    found = prune(planted, PruneRules(share=0.0, per_shape=1, slowest=20.0))
    assert found.dropped == (("invalid", 1), ("slow", 1), ("alike", 4), ("sparse", 0))
    assert not set(found.rows) & {0, 1, *np.flatnonzero(planted.inputs.task == 2).tolist()}
    assert found.share == pytest.approx(6 / 16)


def test_pruning_drops_the_share_asked_for_and_keeps_the_fastest():
    many = with_nests_and_traces(320, 8)
    found = prune(many, PruneRules(share=0.45, per_shape=100))
    assert found.share == pytest.approx(0.45, abs=0.02)
    group = many.inputs.task * 2 + many.inputs.target
    for number in np.unique(group):
        rows = np.flatnonzero(group == number)
        assert rows[np.argmin(many.seconds[rows])] in found.rows
    same = prune(many, PruneRules(share=0.45, per_shape=100))
    np.testing.assert_array_equal(found.rows, same.rows)


def test_tasks_of_few_measurements_give_their_rows_first():
    """Of tasks of 8 and 4 programs 9 stay: shares of 0.9 : 0.45 are 7 and 2, equal ones 6 and 3.
    They lie evenly between the fastest and the slowest."""
    inputs = replace(with_nests_and_traces(12, 2).inputs, task=np.repeat([0, 1], [8, 4]),
                     target=np.zeros(12, np.int64))  # fmt: skip
    many = replace(with_nests_and_traces(12, 2), inputs=inputs, seconds=np.arange(12.0)[::-1] + 1)
    dense = prune(many, PruneRules(share=0.25))
    assert dense.dropped[-1] == ("sparse", 3)
    assert dense.rows.tolist() == [0, 1, 2, 3, 5, 6, 7, 8, 11]
    equal = prune(many, PruneRules(share=0.25, density=0.0))
    assert equal.rows.tolist() == [0, 1, 3, 4, 6, 7, 8, 9, 11]


def test_tasks_weigh_by_their_flop_in_all_networks():
    """Ranks of 100 x 1, 100 x 2 and 300 x 1 FLOP."""
    sizes = ((1, 1, 1, 50), (1, 1, 50, 1), (1, 1, 1, 150))
    tasks = tuple(TensorTask("matmul", each) for each in sizes)
    inputs = replace(
        with_nests_and_traces(8, 2).inputs, tasks=tasks, networks=(("a",), ("a", "b"), ("b",))
    )
    assert task_weights(inputs, 0.5).tolist() == [0.5, 0.75, 1.0]


def test_kernel_shapes_are_alike_to_half_a_power_of_two():
    shape = [kernel_shape(TensorTask("softmax", (rows, 64))) for rows in (64, 66, 128)]
    assert shape[0] == shape[1] != shape[2]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PruneRules(share=1.0), r"share must lie in \[0, 1\), not 1.0"),
        (lambda: PruneRules(slowest=1.0), "slowest must be above 1"),
        (lambda: PruneRules(per_shape=0), "per_shape must be >= 1"),
        (lambda: PruneRules(density=-1.0), "density must be >= 0"),
        (lambda: PruneRules(lightest=0.0), "lightest must lie in"),
    ],
)
def test_bad_configuration(make, message):
    with pytest.raises(TrainingError, match=message):
        make()


def test_nothing_left_is_one_clear_error():
    wrong = replace(with_nests_and_traces(8, 2), seconds=np.full(8, np.inf))
    with pytest.raises(TrainingError, match="nothing is left of 8 programs: 8 are invalid, 0 are"):
        prune(wrong)
