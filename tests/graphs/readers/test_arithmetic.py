"""Closed forms of trip counts and window positions against counting them one by one."""

from __future__ import annotations

import operator
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from go_rl.core import ReadError
from go_rl.graphs.readers.arithmetic.closed_forms import first_failure, floor_sum, valid_pairs
from go_rl.graphs.readers.hlo.window import Window


def test_floor_sum_equals_the_sum():
    rng = random.Random(0)
    for _ in range(500):
        n, m, a, b = rng.randrange(20), rng.randrange(1, 12), rng.randrange(15), rng.randrange(40)
        assert floor_sum(n, m, a, b) == sum((a * i + b) // m for i in range(n))


def test_valid_pairs_equal_brute_force():
    rng = random.Random(1)
    for _ in range(2000):
        outputs, taps, inputs = (rng.randrange(12) for _ in range(3))
        stride, dilation, pad = rng.randrange(1, 6), rng.randrange(1, 6), rng.randrange(-6, 9)
        brute = sum(
            0 <= o * stride + k * dilation - pad < inputs
            for o in range(outputs)
            for k in range(taps)
        )
        assert valid_pairs(outputs, taps, inputs, stride, dilation, pad) == brute


def test_windows_over_dilated_inputs_equal_brute_force():
    rng = random.Random(2)
    for _ in range(1000):
        window = Window(
            rng.randrange(1, 7), rng.randrange(1, 5), rng.randrange(-3, 6), rng.randrange(1, 5),
            rng.randrange(1, 5),
        )  # fmt: skip
        inputs, outputs = rng.randrange(1, 10), rng.randrange(10)
        places = [
            o * window.stride - window.pad_low + k * window.window_dilation
            for o in range(outputs)
            for k in range(window.size)
        ]
        reach = (inputs - 1) * window.base_dilation + 1
        brute = sum(0 <= p < reach and p % window.base_dilation == 0 for p in places)
        assert window.valid_positions(inputs, outputs) == brute


def test_windows_of_any_size_are_counted_at_once():
    # Every tap meets every output, for the input is as long as both together.
    assert valid_pairs(2**40, 2**41, 2**42, 1, 1, 0) == 2**81
    assert Window(2**40).valid_positions(2**41, 2**40) == 2**80


def test_windows_that_cannot_be_counted_are_refused():
    with pytest.raises(ValueError, match="strides and dilations must be 1 or more"):
        valid_pairs(4, 3, 4, 0, 1, 0)
    with pytest.raises(ReadError, match="strides and dilations must be 1 or more"):
        Window(3, stride=0).valid_positions(4, 4)
    with pytest.raises(ReadError, match="too large"):
        Window(2**40, base_dilation=2).valid_positions(2**40, 2**40)


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
