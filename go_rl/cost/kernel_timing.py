"""How long a call takes: repeated until the median is known well enough, or time is up."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from go_rl.cost.collect_config import TimingConfig

NORMAL_95 = 1.96
"""Half the width of a 95 % interval, in standard deviations."""


@dataclass(frozen=True)
class Timing:
    """What one call takes."""

    seconds: float
    """Median."""
    spread: float
    """Half the width of its 95 % interval, relative to it."""
    calls: int
    """Timed calls."""


LEAST_CALLS = 3
CHECK_EVERY = 1.25
"""The interval is looked at after so many times as many calls as before."""


def time_calls(call: Callable[[], object], config: TimingConfig | None = None) -> Timing:
    """Time a call, after one that does not count.

    Args:
        call: returns when its work is done.
        config: how well the median must be known.
    """
    config = config or TimingConfig()
    call()
    times: list[float] = []
    began, check = time.perf_counter(), config.least_calls
    while True:
        before = time.perf_counter()
        call()
        after = time.perf_counter()
        times.append(after - before)
        if len(times) >= LEAST_CALLS and after - began >= config.seconds:
            break
        if len(times) >= check:
            if median_spread(np.array(times)) <= config.spread:
                break
            check = int(np.ceil(check * CHECK_EVERY))
    found = np.array(times)
    return Timing(float(np.median(found)), median_spread(found), len(times))


def median_spread(times: Float64[np.ndarray, "n"]) -> float:
    """Return half the width of the median's 95 % interval, relative to the median.

    From order statistics (David and Nagaraja, "Order Statistics", 2003, section 7.1): the interval
    reaches from the value of rank n/2 - 0.98 sqrt(n) to that of rank n/2 + 0.98 sqrt(n); of few
    times, from the least to the largest.
    """
    ranked, count = np.sort(times), len(times)
    reach = NORMAL_95 / 2 * np.sqrt(count)
    low = max(int(np.floor(count / 2 - reach)), 0)
    high = min(int(np.ceil(count / 2 + reach)), count - 1)
    return float((ranked[high] - ranked[low]) / 2 / np.median(ranked))
