"""Closed forms of window positions against counting them one by one."""

from __future__ import annotations

import random

import pytest

from go_rl.core import ReadError
from go_rl.graphs.readers.arithmetic.lattice_points import floor_sum, valid_pairs
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
