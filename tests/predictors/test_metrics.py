"""Errors by hand."""

from __future__ import annotations

import numpy as np
import pytest

from go_rl.predictors.metrics import ape, by_model, kendall, mape

SECONDS = np.array([2.0, 1.0, 4.0, 10.0, 12.0])
KERNEL = np.array([7, 7, 7, 3, 3])


def test_mape():
    assert mape(np.array([1.1, 1.0]), np.array([1.0, 2.0])) == pytest.approx((10 + 50) / 2)


def test_ape_is_what_the_choices_lose():
    """The first kernel's choice takes 2 instead of 1, the second's the best of 10."""
    predicted = np.array([0.1, 0.2, 0.3, 1.0, 2.0])
    assert ape(predicted, SECONDS, KERNEL) == pytest.approx(100 * 1 / 11)
    assert ape(SECONDS, SECONDS, KERNEL) == 0.0


def test_kendall_counts_pairs_within_kernels():
    """Of the first kernel's three pairs two are in order, the second's only pair is not."""
    predicted = np.array([1.0, 2.0, 3.0, 5.0, 4.0])
    assert kendall(predicted, SECONDS, KERNEL) == pytest.approx(((2 - 1) / 3 - 1) / 2)


def test_a_kernel_that_nothing_ranks_does_not_count():
    assert np.isnan(kendall(np.ones(2), np.ones(2), np.array([0, 1])))


def test_by_model():
    found = by_model(("b", "a", "b"), lambda rows: float(rows.sum()))
    assert found == {"a": 1.0, "b": 2.0}
