"""`CoreSpeed`: how fast this core runs just now, told by a piece of fixed work.

A virtual core shares its execution units, its clock and its time with strangers. While these are
busy everything takes up to twice as long, for milliseconds or for hours; no count of repeats
averages that away.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import repeat

import numpy as np

ADDITIONS = 1000
"""Additions of the fixed work: about five microseconds, and no memory to speak of: the caches stay
as they are."""
FULL_SHARE = 0.005
"""The reference speed is the one that is exceeded in so small a share of the time."""


def fixed_work() -> None:
    """Add ones."""
    sum(repeat(1, ADDITIONS))


class CoreSpeed:
    """Times a piece of fixed work.

    Args:
        full: seconds of the work at the core's reference speed.
        work: what is timed.
    """

    def __init__(self, full: float, work: Callable[[], object] = fixed_work) -> None:
        self._full = full
        self._work = work

    def __call__(self) -> float:
        """Return how many times as long as at the reference speed the work takes just now; it is
        done once before it is timed, for what it needs may have left the caches."""
        self._work()
        began = time.perf_counter()
        self._work()
        return (time.perf_counter() - began) / self._full


def full_pace(seconds: float) -> float:
    """Return the seconds of the fixed work at this core's reference speed, having tried for so
    long."""
    seen, pace, end = [], CoreSpeed(1.0), time.perf_counter() + seconds
    while not seen or time.perf_counter() < end:
        seen.append(pace())
    return float(np.quantile(seen, FULL_SHARE))
