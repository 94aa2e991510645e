"""The first failure of a counter is that of counting."""

from __future__ import annotations

import operator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from go_rl.graphs.readers.arithmetic.counters import first_failure

HOLDS = {
    "LT": operator.lt, "LE": operator.le, "GT": operator.gt,
    "GE": operator.ge, "EQ": operator.eq, "NE": operator.ne,
}  # fmt: skip


@given(st.integers(-20, 20), st.integers(-5, 5), st.integers(-20, 20), st.sampled_from([*HOLDS]))
def test_first_failure_is_that_of_counting(first, step, limit, comparison):
    trips = range(50)
    failed = (t for t in trips if not HOLDS[comparison](first + t * step, limit))
    assert first_failure(first, step, comparison, limit) == next(failed, None)


@pytest.mark.parametrize(("limit", "trips"), [(2, 2), (1 << 63, 1 << 63)])
def test_long_counters_are_not_counted(limit, trips):
    assert first_failure(0, 1, "LT", limit) == trips
