"""What counts as equal up to rounding."""

import numpy as np
import pytest
from rounding import UNIT, assert_rounded_alike


@pytest.mark.parametrize(("expected", "allowed"), [(0.0, 1.0), (0.5, 1.0), (-8.0, 8.0)])
def test_errors_count_against_the_largest_and_at_least_one(expected, allowed):
    within, beyond = (np.array([expected, 0.0]) + 10 * UNIT * allowed * f for f in (0.9, 1.1))
    assert_rounded_alike(within, [expected, 0.0], roundings=10)
    with pytest.raises(AssertionError):
        assert_rounded_alike(beyond, [expected, 0.0], roundings=10)


def test_what_is_no_number_must_be_the_same():
    assert_rounded_alike([-np.inf, 1.0], [-np.inf, 1.0])
    with pytest.raises(AssertionError):
        assert_rounded_alike([1.0], [np.nan])
