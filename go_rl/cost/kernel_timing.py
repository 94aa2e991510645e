"""How long a call takes on a core at its full pace.

A piece of fixed work before and after each call tells how fast the core ran (`go_rl.cost.pace`),
and the call's time is divided by that; of these, the lower decile counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64
from scipy.stats import binom

from go_rl.cost.collect_config import TimingConfig
from go_rl.cost.pace import Pace

DECILE = 0.1


@dataclass(frozen=True)
class Timing:
    """What one call takes."""

    seconds: float
    """Lower decile of the calls, each at full pace."""
    spread: float
    """Half the width of its 95 % interval, relative to it."""
    calls: int
    """Timed calls."""
    slowed: float
    """Median of how many times as long as at full pace the fixed work took beside them."""


@dataclass(frozen=True, eq=False)
class Samples:
    """Timed calls."""

    seconds: Float64[np.ndarray, "n"]
    """[n] as the clock has them."""
    slowed: Float64[np.ndarray, "n"]
    """[n] how many times as long as at full pace the fixed work took, before and after the call on
    average."""


def time_calls(call: Callable[[], object], config: TimingConfig, pace: Pace) -> Timing:
    """Time a call, after one that does not count.

    Args:
        call: returns when its work is done.
        config: when it is timed well enough.
        pace: of this core.
    """

    def sample() -> float:
        before = time.perf_counter()
        call()
        return time.perf_counter() - before

    return time_samples(sample, config, pace)


def time_samples(sample: Callable[[], float], config: TimingConfig, pace: Pace) -> Timing:
    """Time what says itself how many seconds it took; otherwise as `time_calls`."""
    sample()
    samples = take_samples(sample, config, pace)
    seconds, spread = lower_decile(samples.seconds / samples.slowed)
    return Timing(seconds, spread, len(samples.seconds), float(np.median(samples.slowed)))


def take_samples(sample: Callable[[], float], config: TimingConfig, pace: Pace) -> Samples:
    """Call until there are ``most_calls``, or ``least_calls`` that took ``seconds`` in all."""
    seconds: list[float] = []
    paces = [pace()]
    spent = 0.0
    while len(seconds) < config.least_calls or (
        spent < config.seconds and len(seconds) < config.most_calls
    ):
        seconds.append(sample())
        paces.append(pace())
        spent += seconds[-1]
    slowed = np.array(paces)
    return Samples(np.array(seconds), (slowed[:-1] + slowed[1:]) / 2)


def lower_decile(times: Float64[np.ndarray, "n"]) -> tuple[float, float]:
    """Return the lower decile, and half the width of its 95 % interval relative to it."""
    ranked = np.sort(times)
    low, high = interval_ranks(len(ranked))
    decile = float(ranked[int(DECILE * (len(ranked) - 1))])
    return decile, float(ranked[high] - ranked[low]) / 2 / decile


def interval_ranks(count: int) -> tuple[int, int]:
    """Return the ranks, from 0, of the sorted values between which the lower decile lies in 95 % of
    all cases, or the nearest there are of few values.

    So many values lie below the decile as a binomial draw says (David and Nagaraja, "Order
    Statistics", 2003, section 7.1).
    """
    low, high = binom.ppf([0.025, 0.975], count, DECILE)
    return max(int(low) - 1, 0), min(int(high), count - 1)
