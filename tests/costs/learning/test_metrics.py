"""Errors by hand."""

import numpy as np
import pytest

from go_rl.costs.learning.metrics import (
    ape,
    mape,
    pair_accuracy,
    r_squared,
    rmse,
    top_k,
    within,
)

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
