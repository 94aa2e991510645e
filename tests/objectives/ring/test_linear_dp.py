"""Cuts of topological orders: how many orders are tried."""

import pytest
from reference.layered import layered_ring

from go_rl.core import Budget, SearchError
from go_rl.objectives.methods import LinearDP


def test_new_orders_are_drawn_up_to_the_number_asked_for():
    problem = layered_ring(1, 24, 4, "strict")
    few, many = (
        LinearDP(orders=orders).optimize(problem, Budget(samples=200), 0) for orders in (3, 100)
    )
    assert few.samples == 3 + 3  # under the triangle rule also several chips a stage
    assert LinearDP().optimize(problem, Budget(samples=200), 0).samples == 40 + 10
    assert many.samples == 100 + 10
    assert many.value <= few.value


def test_no_order_at_all_is_refused():
    with pytest.raises(SearchError, match="orders must be >= 1, not 0"):
        LinearDP(orders=0)
