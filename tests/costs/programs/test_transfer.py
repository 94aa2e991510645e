"""Pruning, joint features, and the tuner that learns from them."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from go_rl.core import TrainingError
from go_rl.costs.learning.metrics import pair_accuracy, r_squared, rmse, top_k
from go_rl.costs.programs.learn.rivals.xgboost_trees import XgboostConfig, XgboostPrograms
from go_rl.costs.programs.learn.transfer.importance import gain_shares, permutation_losses
from go_rl.costs.programs.learn.transfer.joint_features import JOINT_FEATURES, joint_features
from go_rl.costs.programs.learn.transfer.prune import PruneRules, kernel_shape, prune, task_weights
from go_rl.costs.programs.learn.transfer.scorers import programs_of_task, trees_scorer, tuner_scorer
from go_rl.costs.programs.learn.transfer.tuner import TransferTuner, relative_throughput
from go_rl.costs.programs.learn.transfer.tuner_network import HEAD, TunerSizes
from go_rl.costs.programs.learn.transfer.tuner_training import TunerRun
from go_rl.costs.programs.measure.data import ProgramTarget
from go_rl.costs.programs.workloads import TensorTask
from tests.costs.programs.with_nests import with_nests_and_traces

TINY = TunerSizes(units=16, lstm_layers=1, heads=2, unrolling=2, output_layers=(16,))
RUN = TunerRun(epochs=150, batch=8, learning_rate=5e-3)
TARGET = ProgramTarget("cpu-1", "x86-64-v4")


@cache
def examples():
    return with_nests_and_traces(8, 2)


@cache
def tuner():
    return TransferTuner.fit(examples(), RUN, TINY)


def test_metrics_of_five_programs_by_hand():
    """Tasks of 3 and 2 programs: of 3 + 1 pairs, all but that of 2 and 3 are in order."""
    seconds = np.array([1.0, 2.0, 3.0, 4.0, 8.0])
    found = np.array([1.0, 3.0, 2.0, 5.0, 6.0])
    task = np.array([0, 0, 0, 1, 1])
    assert pair_accuracy(found, seconds, task) == pytest.approx(3 / 4)
    assert top_k(found, seconds, task, 1) == 1.0
    assert top_k(-found, seconds, task, 1) == pytest.approx((1 + 4) / (2 + 8))
    assert top_k(-found, seconds, task, 5) == 1.0
    assert rmse(found, seconds) == pytest.approx(np.sqrt((0 + 1 + 1 + 1 + 4) / 5))
    assert r_squared(found, seconds) == pytest.approx(1 - 7 / 29.2)


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
    inputs = replace(examples().inputs, tasks=tasks, networks=(("a",), ("a", "b"), ("b",)))
    assert task_weights(inputs, 0.5).tolist() == [0.5, 0.75, 1.0]


def test_kernel_shapes_are_alike_to_half_a_power_of_two():
    shape = [kernel_shape(TensorTask("softmax", (rows, 64))) for rows in (64, 66, 128)]
    assert shape[0] == shape[1] != shape[2]


def test_joint_features_of_a_product():
    table = joint_features(examples().inputs)
    named = dict(zip(JOINT_FEATURES, table[0].tolist(), strict=True))
    assert named["flops"] == pytest.approx(np.log2(1 + 2 * 1 * 2 * 8 * 8))
    assert named["rows"] == pytest.approx(np.log2(3))
    assert (named["is matmul"], named["is conv2d"]) == (1.0, 0.0)
    assert np.isnan(named["stride"])
    assert np.isnan(named["warp_size"])
    assert named["code_vector_bytes"] == 5.0


def test_throughput_is_relative_to_the_task_on_the_target():
    many = with_nests_and_traces(8, 2)
    given = replace(many, seconds=np.array([1.0, 2.0, 3.0, 4.0, 4.0, 1.0, 6.0, 8.0]))
    found, group = relative_throughput(given)
    assert group.tolist() == [0, 2, 1, 3, 0, 2, 1, 3]
    assert found.tolist() == [1.0, 0.5, 1.0, 1.0, 0.25, 1.0, 0.5, 0.5]


def test_the_tuner_learns_eight_programs_by_heart():
    truth, _ = relative_throughput(examples())
    found = tuner().throughput(examples().inputs)
    assert rmse(found, truth) < 0.3 * truth.std()
    assert tuner().predict(examples().inputs) == pytest.approx(-found)


def test_the_same_scores_come_from_the_tuners_file(tmp_path):
    tuner().save(tmp_path / "tuner.npz")
    again = TransferTuner.load(tmp_path / "tuner.npz")
    expected = tuner().predict(examples().inputs)
    np.testing.assert_array_equal(again.predict(examples().inputs), expected)
    assert again.run == tuner().run
    assert again.predict(examples().inputs.take(np.zeros(0, np.int64))).shape == (0,)


def test_fine_tuning_changes_the_head_alone():
    """By ranks; the programs are ordered as before, by heart."""
    tuned = tuner().fine_tuned(examples(), replace(RUN, epochs=5, loss="rank"))
    before, after = tuner().params["params"], tuned.params["params"]
    assert before.keys() == after.keys()
    for name in before:
        pairs = zip(_leaves(before[name]), _leaves(after[name]), strict=True)
        assert all(np.array_equal(x, y) for x, y in pairs) == (name not in HEAD)
    group = relative_throughput(examples())[1]
    found = tuned.predict(examples().inputs)
    assert pair_accuracy(found, examples().seconds, group) == 1.0


def _leaves(tree) -> list[np.ndarray]:
    values = [_leaves(each) if isinstance(each, dict) else [each] for each in tree.values()]
    return [each for some in values for each in some]


def test_scorers_score_like_their_predictors():
    pytest.importorskip("xgboost", reason="an extra: pip install 'go_rl[tuning]'")
    task, asts = TensorTask("softmax", (8, 8)), examples().inputs.asts
    inputs = programs_of_task(asts, task, TARGET)
    trees = XgboostPrograms.fit(examples(), XgboostConfig(trees=5))
    schedules = range(8)
    score = trees_scorer(trees, TARGET)(schedules, asts.sums())
    assert score == pytest.approx(trees.predict(inputs))
    tuned = tuner_scorer(tuner(), task, TARGET, lambda some: asts.take(np.array(some)))
    assert tuned(schedules, asts.sums()) == pytest.approx(tuner().predict(inputs))


def test_importance_finds_the_column_that_decides():
    pytest.importorskip("xgboost", reason="an extra: pip install 'go_rl[tuning]'")
    from go_rl.costs.programs.learn.rivals.xgboost_trees import grow_trees

    rng = np.random.default_rng(0)
    table = rng.random((200, 2)).astype(np.float32)
    seconds = np.exp(table[:, 1].astype(np.float64))
    config = XgboostConfig(trees=20, learning_rate=0.3, column_share=1.0)
    booster, _ = grow_trees(table, np.log(seconds), config)
    shares = gain_shares(booster, ("idle", "busy"))
    assert next(iter(shares)) == "busy"
    assert shares["busy"] > 0.9
    lost = permutation_losses(
        lambda x: np.asarray(booster.inplace_predict(x), np.float64), table, seconds,
        np.zeros(200, np.int64), {"idle": [0], "busy": [1]},
    )  # fmt: skip
    assert lost["busy"] > 0.3 > 0.1 > lost["idle"]
    with pytest.raises(TrainingError, match="trees of 2 features, and 1 names"):
        gain_shares(booster, ("one",))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PruneRules(share=1.0), r"share must lie in \[0, 1\), not 1.0"),
        (lambda: PruneRules(slowest=1.0), "slowest must be above 1"),
        (lambda: PruneRules(per_shape=0), "per_shape must be >= 1"),
        (lambda: PruneRules(density=-1.0), "density must be >= 0"),
        (lambda: PruneRules(lightest=0.0), "lightest must lie in"),
        (lambda: TunerSizes(units=5, heads=4), "must be a multiple of heads"),
        (lambda: TunerSizes(unrolling=0), "sizes must be >= 1, not 0"),
        (lambda: TunerRun(loss="rms"), "no loss 'rms'; did you mean 'rmse'"),
        (lambda: TunerRun(epochs=0), "epochs and batch must be >= 1"),
    ],
)
def test_bad_configuration(make, message):
    with pytest.raises(TrainingError, match=message):
        make()


def test_nothing_left_is_one_clear_error():
    wrong = replace(examples(), seconds=np.full(8, np.inf))
    with pytest.raises(TrainingError, match="nothing is left of 8 programs: 8 are invalid, 0 are"):
        prune(wrong)
