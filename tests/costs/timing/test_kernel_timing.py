"""When a measurement ends, how the core's pace enters it, and how well it is known."""

import pytest
from scipy.stats import binom

from go_rl.api.calibrate_programs import CalibrateProgramsConfig
from go_rl.core import TrainingError
from go_rl.costs.timing import timing as kernel_timing
from go_rl.costs.timing.config import CollectConfig, ProgramsConfig, TimingConfig
from go_rl.costs.timing.core_speed import CoreSpeed
from go_rl.costs.timing.timing import (
    Timing,
    clocked,
    interval_ranks,
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


def test_a_slowed_core_does_not_change_the_time(monkeypatch):
    """Every call takes 1 ms at full pace, and twice as long; one piece of work was held up."""
    clock = Clock(monkeypatch, [1e-3], [2.0, 2.0, 2.0, 2.0, 50.0, 2.0])
    timing = time_calls(clock.call, TimingConfig(seconds=0.1, least_calls=8), clock.pace)
    assert timing.seconds == pytest.approx(1e-3)
    assert timing.median == pytest.approx(1e-3)
    assert timing.slowed == pytest.approx(2.0)


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


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: CollectConfig(least_seconds=float("nan")), "least_seconds must be >= 0, not nan"),
        (lambda: CollectConfig(most_seconds=0.0), "most_seconds must be > 0, not 0.0"),
        (lambda: ProgramsConfig(build_core=-1), "build_core must be >= 0, not -1"),
        (lambda: CalibrateProgramsConfig(most_away=3.0), r"most_away must be in \(0, 1\], not 3.0"),
    ],
)
def test_limits_of_what_is_measured_are_checked_before_anything_is_timed(make, said):
    with pytest.raises(TrainingError, match=said):
        make()
