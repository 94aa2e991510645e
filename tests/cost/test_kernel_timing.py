"""When a measurement ends, and how well its median is known."""

from __future__ import annotations

import numpy as np
import pytest

from go_rl.cost import kernel_timing
from go_rl.cost.collect_config import TimingConfig
from go_rl.cost.kernel_timing import median_spread, time_calls


def clocked(monkeypatch, seconds):
    """Calls take these seconds, the first of which is the warm-up's; then the last for ever."""
    now, left = [0.0], list(seconds)

    def call():
        now[0] += left.pop(0) if len(left) > 1 else left[0]

    monkeypatch.setattr(kernel_timing.time, "perf_counter", lambda: now[0])
    return call


def test_the_warm_up_does_not_count(monkeypatch):
    call = clocked(monkeypatch, [100.0, 1e-3])
    timing = time_calls(call, TimingConfig(least_calls=10))
    assert (timing.seconds, timing.calls) == (pytest.approx(1e-3), 10)
    assert timing.spread == pytest.approx(0.0, abs=1e-9)


def test_a_slow_call_is_timed_three_times(monkeypatch):
    timing = time_calls(clocked(monkeypatch, [5.0, 5.0, 6.0, 7.0]), TimingConfig(seconds=0.1))
    assert (timing.seconds, timing.calls) == (6.0, 3)
    assert timing.spread == pytest.approx(1 / 6)


def test_it_goes_on_until_the_median_is_known(monkeypatch):
    """Alternately 1 and 2 ms for 24 calls, then 1 ms."""
    noisy = [1e-3, *[1e-3, 2e-3] * 12, 1e-3]
    timing = time_calls(clocked(monkeypatch, noisy), TimingConfig(least_calls=10, seconds=9.0))
    assert timing.calls > 24
    assert timing.spread <= 0.01
    assert timing.seconds == pytest.approx(1e-3)


def test_the_interval_holds_the_true_median_as_often_as_it_says():
    """Of exponential times with median 1; the bounds are those of 2,000 repetitions."""
    rng, inside = np.random.default_rng(0), 0
    for _ in range(2000):
        times = rng.exponential(1 / np.log(2), 50)
        half = median_spread(times) * np.median(times)
        low, high = np.sort(times)[[18, 32]]
        assert half == pytest.approx((high - low) / 2)
        inside += low <= 1.0 <= high
    assert 0.95 <= inside / 2000 <= 0.99
