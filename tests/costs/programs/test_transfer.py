"""Joint features, the tuner that learns from them, attention and moments: by hand."""

from dataclasses import replace
from functools import cache

import jax.numpy as jnp
import numpy as np
import pytest

from go_rl.core import TrainingError
from go_rl.costs.learning.metrics import pair_accuracy
from go_rl.costs.programs.learn.central_moments import central_moment_discrepancy
from go_rl.costs.programs.learn.transfer.attention_memory import AttentionMemory
from go_rl.costs.programs.learn.transfer.joint_features import JOINT_FEATURES, joint_features
from go_rl.costs.programs.learn.transfer.tuner import TransferTuner, relative_throughput
from go_rl.costs.programs.learn.transfer.tuner_network import HEAD, TunerSizes
from go_rl.costs.programs.learn.transfer.tuner_training import TunerRun
from tests.costs.programs.made_up import with_nests_and_traces

TINY = TunerSizes(units=16, lstm_layers=1, heads=2, unrolling=2, output_layers=(16,))
RUN = TunerRun(epochs=150, batch=8, learning_rate=5e-3)


@cache
def examples():
    return with_nests_and_traces(8, 2)


@cache
def tuner():
    return TransferTuner.fit(examples(), RUN, TINY)


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


RIGHT, UP = np.array([[[1.0, 0.0]], [[0.0, 1.0]]], np.float32)


def memory() -> AttentionMemory:
    """Operator 3 has a fast program to the right and one half as fast upwards; operator 5 one to
    the left, and one upwards that failed."""
    states = [np.concatenate([RIGHT, 2 * UP]), np.concatenate([-RIGHT, UP])]
    return AttentionMemory.of(states, [np.array([1.0, 2.0]), np.array([4.0, np.nan])], [3, 5])


def test_throughput_is_relative_to_each_operators_fastest():
    assert memory().throughput.tolist() == [1.0, 0.5, 1.0, 0.0]


def test_attention_is_a_softmax_of_cosines():
    """Cosines 1, 0, -1, 0 at temperature 1: e, 1, 1/e and 1 over their sum, whatever lengths."""
    weights = np.exp([1.0, 0.0, -1.0, 0.0])
    weights /= weights.sum()
    found = memory().attention(7 * RIGHT, temperature=1.0)
    np.testing.assert_allclose(found, [weights], rtol=1e-6)
    expected = weights @ np.array([1.0, 0.5, 1.0, 0.0])
    np.testing.assert_allclose(memory().throughputs(RIGHT, 1.0), [expected], rtol=1e-6)
    np.testing.assert_allclose(memory().throughputs(RIGHT, 1e-3), [1.0], rtol=1e-6)
    np.testing.assert_allclose(memory().throughputs(UP, 1e-3), [0.25], rtol=1e-6)


def test_nothing_tuned_is_an_error():
    with pytest.raises(TrainingError, match="nothing to reuse"):
        AttentionMemory.of([], [], [])
    with pytest.raises(TrainingError, match="no schedule of operator 7 has a time"):
        AttentionMemory.of([RIGHT], [np.array([np.nan])], [7])


def test_central_moments_by_hand():
    """Means 0 and 1/2; second central moments 1 and 1/4; width 2."""
    one = jnp.array([[1.0], [-1.0]])
    other = jnp.array([[1.0], [0.0]])
    expected = 0.5 / 2 + (1 - 0.25) / 4
    assert float(central_moment_discrepancy(one, other, 2)) == pytest.approx(expected, abs=1e-4)


@pytest.mark.slow
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
