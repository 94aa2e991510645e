"""How far rules are apart on calls whose times are known."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.kernels.timing_rules import ROUNDS, TimingRules, compare, page, successive
from go_rl.costs.timing.timing import TimingSamples


def visits(seconds: float, slowed: float, count: int = 30) -> list[TimingSamples]:
    """Of calls that take so many seconds at full pace, and are slowed as the fixed work is."""
    return [TimingSamples(np.full(5, seconds * slowed), np.full(5, slowed), np.zeros(5))] * count


def test_a_slowed_process_matters_to_raw_times_only(tmp_path):
    """A short kernel, and a long one; the second process runs at half the pace."""
    first, second = ([visits(s, slowed) for s in (1e-5, 1e-3)] for slowed in (1.0, 2.0))
    rows = compare(first, second, [1e-5, 1e-3])
    assert {row.visits for row in rows} == set(ROUNDS)
    for row in rows:
        apart = 50.0 if row.rule.startswith("raw") else 0.0
        assert (row.short_percent, row.long_percent) == pytest.approx((apart, apart))
    text = page(rows, 2, 30, TimingRules(tmp_path), 1.5)
    assert "| low | 0.0 / 0.0 |" in text
    assert "| quick | 0.0 / 0.0 |" in text
    assert "| raw, least | 50.0 / 50.0 |" in text


def test_successive_visits_follow_each_other():
    each = [TimingSamples(np.array([float(i)]), np.array([1.0]), np.zeros(1)) for i in range(10)]
    drawn = successive(each, 4, np.random.default_rng(0)).seconds
    assert np.diff(drawn).tolist() == [1.0, 1.0, 1.0]
    assert len(successive(each, 24, np.random.default_rng(0)).seconds) == 10
