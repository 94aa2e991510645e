"""Prices of a network's launches: predicted once, fused bytes on top, bounds of the sum; and a host
that issues launches ahead of the GPU, by hand."""

from types import SimpleNamespace

import numpy as np
import pytest

from go_rl import load
from go_rl.costs.devices import find_device
from go_rl.costs.operators.launches import Launches, eager_launches
from go_rl.costs.operators.launches.launch import Launch
from go_rl.costs.operators.launches.launch_prices import STREAMED_SHARE, launch_prices, total_bounds
from go_rl.costs.operators.launches.launch_replay import issued_ahead
from go_rl.costs.operators.predictor import Interval


class Counting:
    """A predictor of one millisecond for everything, which keeps what it is asked."""

    def __init__(self):
        self.asked = []

    def interval(self, inputs):
        count = len(inputs.rows)
        self.asked.append(count)
        one = np.full(count, 1e-3)
        half = 0.5 * one
        return Interval(one, half, 2 * one, np.zeros(count, bool), 0 * one, 0 * one, one)


def _launches(*each):
    return Launches(
        SimpleNamespace(names=(), element_type=None, weight_bytes=np.zeros(1)),
        each,
        ((),) * len(each),
    )


def _stream(op, rows=8, **others):
    return Launch(op, {"batch": rows, "width": 4}, (), op, **others)


def test_equal_launches_are_predicted_once():
    counting = Counting()
    launches = eager_launches(load("zoo:bert-tiny"))
    found = launch_prices(launches, find_device("t4"), counting)
    assert counting.asked == [len({launch.key for launch in launches.each})]
    assert counting.asked[0] < len(launches) / 2
    assert found.seconds.sum() == pytest.approx(1e-3 * len(launches))


def test_fused_bytes_come_on_top_and_stand_ins_are_unlike():
    sheet = find_device("t4")
    launches = _launches(
        _stream("ln"), _stream("ln", extra_bytes=3.2e9), _stream("ln", unlike=True)
    )
    found = launch_prices(launches, sheet, Counting())
    extra = 3.2e9 / (STREAMED_SHARE * 320e9)
    np.testing.assert_allclose(found.seconds, [1e-3, 1e-3 + extra, 1e-3])
    np.testing.assert_allclose(found.high, [2e-3, 2e-3 + extra, 2e-3])
    np.testing.assert_allclose(found.busy, [1e-3, 1e-3 + extra, 1e-3])
    assert found.unlike.tolist() == [False, False, True]


def test_errors_of_a_group_add_and_of_groups_cancel_in_part():
    """Sides of 0.5 and 1 ms: twice as much in one group, the root of 3 times as much in two."""
    for ops, times in ((("add", "relu"), 2.0), (("softmax", "ln"), np.sqrt(3.0))):
        launches = _launches(*(_stream(op) for op in ops))
        prices = launch_prices(launches, find_device("t4"), Counting())
        low, high = total_bounds(launches, prices, 2e-3)
        assert low == pytest.approx(2e-3 - times * 0.5e-3)
        assert high == pytest.approx(2e-3 + times * 1e-3)
        bounds = total_bounds(launches, prices, 1e-3)
        assert bounds == pytest.approx((low / 2, high / 2)), "in proportion"


def _run(host, start, busy):
    count = len(host)
    chain = tuple((n - 1,) if n else () for n in range(count))
    return issued_ahead(*(np.array(each, np.float64) for each in (host, start, busy)), chain)


def test_long_kernels_hide_the_host():
    """Three kernels of 100: the host is ahead after its first start of 2."""
    found = _run([5, 5, 5], [2, 2, 2], [100, 100, 100])
    assert found.seconds == pytest.approx(2 + 300, abs=1e-5)


def test_short_kernels_wait_for_the_host():
    """Kernels of 1 are issued at 2, 7 and 12; the host is done at 15, after the last kernel."""
    found = _run([5, 5, 5], [2, 2, 2], [1, 1, 1])
    assert found.end[2::3].tolist() == pytest.approx([3, 8, 13], abs=1e-5)
    assert found.seconds == 15
