"""Joint features, and the tuner that learns from them."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from go_rl.core import TrainingError
from go_rl.costs.learning.metrics import pair_accuracy, r_squared, rmse, top_k
from go_rl.costs.programs.learn.transfer.joint_features import JOINT_FEATURES, joint_features
from go_rl.costs.programs.learn.transfer.tuner import TransferTuner, relative_throughput
from go_rl.costs.programs.learn.transfer.tuner_network import HEAD, TunerSizes
from go_rl.costs.programs.learn.transfer.tuner_training import TunerRun
from go_rl.costs.programs.measure.data import ProgramTarget
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


@pytest.mark.slow
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


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TunerSizes(units=5, heads=4), "must be a multiple of heads"),
        (lambda: TunerSizes(unrolling=0), "unrolling must be >= 1, not 0"),
        (lambda: TunerRun(loss="rms"), "no loss 'rms'; did you mean 'rmse'"),
        (lambda: TunerRun(epochs=0), "epochs must be >= 1"),
    ],
)
def test_bad_configuration(make, message):
    with pytest.raises(TrainingError, match=message):
        make()
