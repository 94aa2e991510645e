"""One tolerance says what optimal means."""

from math import inf

import pytest

from go_rl.core import OPTIMAL_GAP, proved_optimal


@pytest.mark.parametrize(
    ("value", "bound", "closed"),
    [
        (2.0, 2.0, True),
        (2.0, 2.5, True),
        (1.0 + 0.9 * OPTIMAL_GAP, 1.0, True),
        (1.0 + 1.1 * OPTIMAL_GAP, 1.0, False),
        (0.0, 0.0, True),
        (1e-9, 0.0, False),
        (inf, 1.0, False),
        (inf, inf, False),
    ],
)
def test_a_closed_gap_is_optimal(value: float, bound: float, closed: bool) -> None:
    assert proved_optimal(value, bound) is closed
