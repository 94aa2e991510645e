"""When a measurement ends, how the core's pace enters it, and how well it is known."""

import numpy as np
import pytest
from scipy.stats import binom

from go_rl.core import TrainingError
from go_rl.costs.timing import core_speed as pace
from go_rl.costs.timing import timing as kernel_timing
from go_rl.costs.timing.config import TimingConfig
from go_rl.costs.timing.core_speed import CoreSpeed, full_pace
from go_rl.costs.timing.timing import (
    Timing,
    TimingSamples,
    clocked,
    interval_ranks,
    joined,
    low_quantile,
    split_seconds,
    timing_of,
    visit,
)

WORK = 1e-5
"""Seconds of the fixed work at full pace."""


class Clock:
    """Calls take these seconds, the first of which is the warm-up's; then the last for ever. The
    core is slowed by each call's factor, too."""

    def __init__(self, monkeypatch, seconds, slowed=(1.0,)):
        self.now, self.left, self.slowed = 0.0, list(seconds), list(slowed)
        monkeypatch.setattr(kernel_timing.time, "perf_counter", lambda: self.now)
        self.pace = CoreSpeed(WORK, self.work)

    def call(self):
        if len(self.slowed) > 1:
            self.slowed.pop(0)
        self.now += (self.left.pop(0) if len(self.left) > 1 else self.left[0]) * self.slowed[0]

    def work(self):
        self.now += WORK * self.slowed[0]


def time_calls(call, config, pace) -> Timing:
    return timing_of(visit(clocked(call), config, pace))


def test_the_warm_up_does_not_count(monkeypatch):
    clock = Clock(monkeypatch, [100.0, 1e-3])
    timing = time_calls(clock.call, TimingConfig(seconds=0.0095, most_calls=100), clock.pace)
    assert (timing.seconds, timing.calls) == (pytest.approx(1e-3), 10)
    assert timing.spread == pytest.approx(0.0, abs=1e-9)
    assert timing.slowed == pytest.approx(1.0)


def test_fast_calls_are_made_three_times_before_they_count(monkeypatch):
    clock = Clock(monkeypatch, [3e-3, 2e-3, 2e-3, 1e-3])
    timing = time_calls(clock.call, TimingConfig(seconds=5e-3), clock.pace)
    assert (timing.seconds, timing.calls) == (pytest.approx(1e-3), 5)


def test_slow_calls_are_timed_some_times_and_fast_ones_not_for_ever(monkeypatch):
    slow = Clock(monkeypatch, [5.0, 7.0, 6.0, 5.0])
    config = TimingConfig(seconds=0.1, least_calls=3, most_calls=50)
    timing = time_calls(slow.call, config, slow.pace)
    assert (timing.seconds, timing.calls) == (pytest.approx(5.0), 3)
    assert timing.spread == pytest.approx((7 - 5) / 2 / 5)
    fast = Clock(monkeypatch, [1e-6])
    assert time_calls(fast.call, config, fast.pace).calls == 50


def test_a_slowed_core_does_not_change_the_time(monkeypatch):
    """Every call takes 1 ms at full pace, and twice as long; one piece of work was held up."""
    clock = Clock(monkeypatch, [1e-3], [2.0, 2.0, 2.0, 2.0, 50.0, 2.0])
    timing = time_calls(clock.call, TimingConfig(seconds=0.1, least_calls=8), clock.pace)
    assert timing.seconds == pytest.approx(1e-3)
    assert timing.median == pytest.approx(1e-3)
    assert timing.slowed == pytest.approx(2.0)


def test_a_low_quantile_of_the_paced_times_counts():
    """Of seven the first: rank 0.15 * 6 = 0.9, rounded down."""
    seconds, slowed = np.arange(2.0, 16.0, 2.0), np.full(7, 2.0)
    timing = timing_of(TimingSamples(seconds, slowed, np.array([14.0, *[0.0] * 6])))
    assert (timing.seconds, timing.median, timing.calls) == (1.0, 4.0, 7)
    assert timing.away == pytest.approx(14 / 70)
    half = TimingSamples(seconds[:3], slowed[:3], np.zeros(3))
    assert timing_of(joined([half, half])).calls == 6


def test_what_others_take_of_a_call_is_taken_off(monkeypatch):
    """10 ms on the wall, of which the process had 4; a gap of 15 microseconds is none."""
    clock = Clock(monkeypatch, [10e-3, 10e-3, 1e-3])
    busy = iter([1.0, 1.004, 2.0, 2.000985])
    monkeypatch.setattr(kernel_timing.time, "process_time", lambda: next(busy))
    call = clocked(clock.call)
    assert split_seconds(call, own=False) == (pytest.approx(10e-3), 0.0)
    assert split_seconds(call, own=True) == (pytest.approx(4e-3), pytest.approx(6e-3))
    assert split_seconds(call, own=True) == (pytest.approx(1e-3), 0.0)


def test_a_visit_lasts_until_the_process_has_had_its_time(monkeypatch):
    """Calls of 1 ms that last 4 ms on the wall."""
    clock = Clock(monkeypatch, [4e-3])
    monkeypatch.setattr(kernel_timing.time, "process_time", lambda: clock.now / 4)
    samples = visit(clocked(clock.call), TimingConfig(seconds=8.5e-3), clock.pace, own=True)
    assert len(samples.seconds) == 9
    assert samples.seconds.sum() == pytest.approx(9e-3)
    assert samples.away.sum() == pytest.approx(27e-3)


def test_the_work_is_done_once_before_it_is_timed():
    done = []
    CoreSpeed(1.0, lambda: done.append(0))()
    assert len(done) == 2


def test_the_full_pace_is_that_of_the_rare_undisturbed_moments(monkeypatch):
    """Of 1,000 times, ten of 5 microseconds and the rest of 9."""
    now, seen = [0.0], [9e-6] * 990 + [5e-6] * 10

    def look() -> float:
        now[0] += 1.0
        return seen.pop()

    monkeypatch.setattr(pace.time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(pace, "CoreSpeed", lambda full: look)
    assert full_pace(1000.0) == pytest.approx(5e-6)
    assert seen == []


def test_the_quantile_is_the_15th_of_a_hundred():
    times = np.random.default_rng(0).permutation(np.arange(1.0, 101.0))
    found, spread = low_quantile(times)
    low, high = interval_ranks(100)
    assert (found, low, high) == (15.0, 7, 22)
    assert spread == pytest.approx((23 - 8) / 2 / 15)


@pytest.mark.parametrize("count", [20, 50, 200, 999])
def test_the_interval_holds_the_quantile_in_95_of_100_cases(count):
    """As many of ``count`` values lie below the quantile as a binomial draw says; the interval
    holds it when these are more than ``low`` and at most ``high``."""
    low, high = interval_ranks(count)
    inside = binom.cdf(high, count, 0.15) - (binom.cdf(low, count, 0.15) if low else 0.0)
    assert 0.95 <= inside <= 0.99


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"seconds": 0.0}, "seconds must be > 0"),
        ({"least_calls": 0}, "least_calls must be >= 1"),
        ({"least_calls": 9, "most_calls": 8}, "most_calls must be no fewer than least_calls"),
    ],
)
def test_senseless_configurations_are_refused(wrong, said):
    with pytest.raises(TrainingError, match=f"^measure: {said}"):
        TimingConfig(**wrong)


@pytest.mark.parametrize("variation", [-0.1, 1.0, float("nan")])
def test_a_senseless_variation_is_refused(variation):
    with pytest.raises(TrainingError, match="variation must be in"):
        TimingConfig(variation=variation)
