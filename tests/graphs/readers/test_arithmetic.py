"""Closed forms of trip counts and window positions against counting them one by one."""

from __future__ import annotations

import random

import pytest

from go_rl.core import ReadError
from go_rl.graphs.readers.arithmetic.closed_forms import valid_pairs
from go_rl.graphs.readers.hlo.window import Window


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


def test_windows_that_cannot_be_counted_are_refused():
    with pytest.raises(ValueError, match="strides and dilations must be 1 or more"):
        valid_pairs(4, 3, 4, 0, 1, 0)
    with pytest.raises(ReadError, match="strides and dilations must be 1 or more"):
        Window(3, stride=0).valid_positions(4, 4)
    with pytest.raises(ReadError, match="too large"):
        Window(2**40, base_dilation=2).valid_positions(2**40, 2**40)
