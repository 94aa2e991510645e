"""Time of a call on a core at its reference speed.

Of a call's time on the wall only what this process had the core for counts; other processes, and
other machines on the same hardware, take it away for milliseconds at a time. A piece of fixed work
before and after each call tells how fast the core ran (`go_rl.costs.timing.core_speed`). The times
of a visit are divided by its median, and a low quantile of these is the answer (`LOW`). What has to
be known well is timed in several visits, some seconds apart, for disturbances last longer than a
visit.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from go_rl.costs.timing.config import TimingConfig
from go_rl.costs.timing.core_speed import CoreSpeed

LOW = 0.15
"""The quantile of all calls that counts: lower ones are known less well, and in higher ones are
disturbances that the pace does not show."""
WARM_CALLS, WARM_SECONDS = 3, 0.01
"""Warm-up calls and seconds: behind others, a kernel takes up to twice as long: caches and the
memory of results are not yet as they are when it runs again and again."""
CHECKS = 20
"""Runs of the fixed work that tell whether the core is disturbed just now."""
LONG_CALL = 0.01
"""Seconds of a call beside which the fixed work runs as often: such calls are few, and behind one
the first runs are slow, since what they need has left the caches."""
LEAST_AWAY = 2e-5
"""Shorter gaps between the time on the wall and that of the process are none: reading the latter
takes a microsecond or two."""


@dataclass(frozen=True)
class Timing:
    """Timing of one call."""

    seconds: float
    """Seconds of a call at the reference speed: the quantile `LOW`."""
    median: float
    """The median of the same."""
    spread: float
    """Half the width of its 95 % interval, relative to it, as if calls were independent."""
    calls: int
    """Timed calls, those that do not count among them."""
    slowed: float
    """Median of how many times as long as at the reference speed the fixed work took beside
    them."""
    away: float
    """Share of the time on the wall in which others had the core."""


@dataclass(frozen=True, eq=False)
class TimingSamples:
    """Timed calls."""

    seconds: Float64[np.ndarray, "n"]
    """[n] in which this process had the core."""
    slowed: Float64[np.ndarray, "n"]
    """[n] how many times as long as at the reference speed the fixed work took, the median of a
    visit."""
    away: Float64[np.ndarray, "n"]
    """[n] seconds in which others had it, in the midst of the call."""


def clocked(call: Callable[[], object]) -> Callable[[], float]:
    """Return the call as one that says how many seconds it took."""

    def sample() -> float:
        before = time.perf_counter()
        call()
        return time.perf_counter() - before

    return sample


def has_a_core() -> bool:
    """Return whether this process must run on a single core: what it computes there takes as much
    of its own time as of that on the wall, unless the core is taken away."""
    return hasattr(os, "sched_getaffinity") and len(os.sched_getaffinity(0)) == 1


def split_seconds(sample: Callable[[], float], own: bool) -> tuple[float, float]:
    """Return how many seconds a call took, and how many it would not have taken had nobody else had
    the core.

    Args:
        sample: says how many seconds it took, by the clock on the wall.
        own: whether waiting is none of its work, see `has_a_core`; else nothing is taken off.
    """
    if not own:
        return sample(), 0.0
    busy, began = time.process_time(), time.perf_counter()
    seconds = sample()
    wall = time.perf_counter() - began
    away = wall - (time.process_time() - busy)
    if away < LEAST_AWAY:
        return seconds, 0.0
    lost = seconds * min(away / wall, 1.0)
    return seconds - lost, lost


def visit(
    sample: Callable[[], float], config: TimingConfig, pace: CoreSpeed, own: bool = False
) -> TimingSamples | None:
    """Return the timed calls of a visit (`calls_of`); None where the core is disturbed just now and
    may not be (``most_slowed``). It may be disturbed meanwhile: see `is_quiet`."""
    most = config.most_slowed
    if most and float(np.median([pace() for _ in range(CHECKS)])) > most:
        return None
    return calls_of(sample, config, pace, own)


def is_quiet(samples: TimingSamples, most_slowed: float) -> bool:
    """Return whether a visit was made on a core that nobody disturbed; ``most_slowed`` 0: yes."""
    return most_slowed == 0 or float(np.median(samples.slowed)) <= most_slowed


def calls_of(
    sample: Callable[[], float], config: TimingConfig, pace: CoreSpeed, own: bool = False
) -> TimingSamples:
    """Call until there are ``most_calls``, or ``least_calls`` that took ``seconds`` in all; some
    times before, which does not count: `WARM_CALLS`, or less once `WARM_SECONDS` are over.

    Args:
        sample: says how many seconds it took, or the mean of several runs.
        config: when to end.
        pace: of this core.
        own: see `split_seconds`.
    """
    warm = time.perf_counter() + WARM_SECONDS
    for _ in range(WARM_CALLS):
        if time.perf_counter() < warm:
            sample()
    seconds: list[float] = []
    away: list[float] = []
    paces = [pace()]
    spent = 0.0
    while len(seconds) < config.least_calls or (
        spent < config.seconds and len(seconds) < config.most_calls
    ):
        began = time.perf_counter()
        mine, others = split_seconds(sample, own)
        spent += time.perf_counter() - began - others
        seconds.append(mine)
        away.append(others)
        paces += [pace() for _ in range(CHECKS if mine > LONG_CALL else 1)]
    slowed = np.full(len(seconds), np.median(paces))
    return TimingSamples(np.array(seconds), slowed, np.array(away))


def joined(visits: Sequence[TimingSamples]) -> TimingSamples:
    """Return the calls of several visits together."""
    return TimingSamples(
        np.concatenate([each.seconds for each in visits]),
        np.concatenate([each.slowed for each in visits]),
        np.concatenate([each.away for each in visits]),
    )


def timing_of(samples: TimingSamples) -> Timing:
    """Return what timed calls, at least one, tell of the call."""
    own, away = samples.seconds, samples.away
    paced = own / samples.slowed
    seconds, spread = low_quantile(paced)
    return Timing(
        seconds=seconds,
        median=float(np.median(paced)),
        spread=spread,
        calls=len(own),
        slowed=float(np.median(samples.slowed)),
        away=float(away.sum() / (own.sum() + away.sum())),
    )


def low_quantile(times: Float64[np.ndarray, "n"]) -> tuple[float, float]:
    """Return the quantile `LOW`, and half the width of its 95 % interval relative to it."""
    ranked = np.sort(times)
    low, high = interval_ranks(len(ranked))
    found = float(ranked[int(LOW * (len(ranked) - 1))])
    return found, float(ranked[high] - ranked[low]) / 2 / found


def interval_ranks(count: int) -> tuple[int, int]:
    """Return the ranks, from 0, of the sorted values between which the quantile `LOW` lies in
    95 % of all cases, or the nearest there are of few values.

    So many values lie below the quantile as a binomial draw says (David and Nagaraja, "Order
    Statistics", 2003, section 7.1).
    """
    from scipy.stats import binom  # imports for half a second

    low, high = binom.ppf([0.025, 0.975], count, LOW)
    return max(int(low) - 1, 0), min(int(high), count - 1)
