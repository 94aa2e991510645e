"""Attention to measured programs, by hand."""

import numpy as np
import pytest

from go_rl.core import TrainingError
from go_rl.costs.programs.learn.transfer.attention_memory import AttentionMemory

RIGHT, UP = np.array([[[1.0, 0.0]], [[0.0, 1.0]]], np.float32)


def memory() -> AttentionMemory:
    """Operator 3 has a fast program to the right and one half as fast upwards; operator 5 one to
    the left, and one upwards that failed."""
    states = [np.concatenate([RIGHT, 2 * UP]), np.concatenate([-RIGHT, UP])]
    return AttentionMemory.of(states, [np.array([1.0, 2.0]), np.array([4.0, np.nan])], [3, 5])


def test_throughput_is_relative_to_each_operators_fastest():
    assert memory().throughput.tolist() == [1.0, 0.5, 1.0, 0.0]
    assert memory().operator.tolist() == [3, 3, 5, 5]


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


def test_sources_are_shares_of_operators():
    shares = memory().sources(np.concatenate([RIGHT, RIGHT]), 1e-3)
    assert list(shares) == [3, 5]
    assert shares[3] == pytest.approx(1.0)
    assert sum(memory().sources(UP, 1.0).values()) == pytest.approx(1.0)


def test_nothing_tuned_is_an_error():
    with pytest.raises(TrainingError, match="nothing to reuse"):
        AttentionMemory.of([], [], [])
    with pytest.raises(TrainingError, match="no schedule of operator 7 has a time"):
        AttentionMemory.of([RIGHT], [np.array([np.nan])], [7])
