"""90 % intervals of GPUs that were not measured, learned by leaving out each measured one.

Errors on left-out GPUs are pooled by operators and by what bounds them, each GPU of equal weight.
A GPU errs as a whole: quantiles of pooled errors cover one GPU wholly and another hardly. So the
quantiles are chosen by what they cover of one GPU when the others alone set the bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from jaxtyping import Float64, Int

from go_rl.predictors.operators.examples import ERROR_GROUPS

REGIMES = ("launch", "short", "long")
"""Operators by what bounds them: the launch, or the GPU for less or more than `LONG`."""
LAUNCH_BOUND = 1.5
"""Times the floor up to which the launch bounds an operator."""
LONG = 1e-3
"""Seconds."""
CELLS = len(ERROR_GROUPS) * len(REGIMES)
LOW_TAILS = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15)
HIGH_TAILS = (0.85, 0.9, 0.925, 0.95, 0.975, 0.99)
"""Candidates for the quantiles that bound an interval."""
WANTED, LEAST, MOST = 0.9, 0.85, 0.95
"""Coverage, and its range on each GPU."""
OF_MEAN, OF_WIDTH = 1.0, 0.1
"""Weights of the mean coverage and of the width of the interval beside coverage out of range."""
NARROWEST = 0.03
UNKNOWN = 0.7
"""Logarithms: an interval is no narrower, and this wide where nothing was learned."""
SLOW_HOST = 2.0
"""Times as slow as the median host another may be: part of every interval, for few were seen."""
POINTS = np.linspace(0.0, 1.0, 401)


@dataclass(frozen=True)
class Calibration:
    """Bounds of the logarithm of measured over predicted seconds."""

    low: tuple[float, ...]
    high: tuple[float, ...]
    """[CELLS] of `cells`."""


def cells(
    error_group: Int[np.ndarray, "R"], seconds: Float64[np.ndarray, "R"],
    floor: Float64[np.ndarray, "R"],
) -> Int[np.ndarray, "R"]:  # fmt: skip
    """Return [R] cells of intervals: operators of one group and regime.

    Args:
        error_group: [R] index in `ERROR_GROUPS`.
        seconds: [R] predicted.
        floor: [R] seconds of the launch.
    """
    regime = np.where(seconds < LAUNCH_BOUND * floor, 0, np.where(seconds < LONG, 1, 2))
    return error_group * len(REGIMES) + regime


def bounds(
    found: Calibration, cell: Int[np.ndarray, "R"], seconds: Float64[np.ndarray, "R"],
    floor: Float64[np.ndarray, "R"],
) -> tuple[Float64[np.ndarray, "R"], Float64[np.ndarray, "R"]]:  # fmt: skip
    """Return [R] lower and upper bounds of seconds; arguments as those of `cells`."""
    low = seconds * np.exp(np.array(found.low)[cell])
    high = seconds * np.exp(np.array(found.high)[cell])
    return low, np.maximum(high, seconds + (SLOW_HOST - 1) * floor)


def calibrate(
    error: Float64[np.ndarray, "R"], slow: Float64[np.ndarray, "R"],
    cell: Int[np.ndarray, "R"], device: Int[np.ndarray, "R"],
) -> Calibration:  # fmt: skip
    """Return the bounds.

    Args:
        error: [R] logarithms of measured over predicted seconds, on GPUs that were left out.
        slow: [R] those that a slow host explains.
        cell: [R] of `cells`.
        device: [R] index of the GPU.
    """
    pairs = []
    for each in range(CELLS):
        rows = cell == each
        pairs.append(_cell_bounds(error[rows], slow[rows], device[rows]))
    low, high = zip(*pairs, strict=True)
    return Calibration(low, high)


def _cell_bounds(error: np.ndarray, slow: np.ndarray, device: np.ndarray) -> tuple[float, float]:
    """Bounds by the tails that cover left-out GPUs best."""
    devices = np.unique(device)
    if len(devices) < 2:
        return -UNKNOWN, UNKNOWN
    own = np.stack([np.quantile(error[device == each], POINTS) for each in devices])
    parts = [(error[device == each], slow[device == each]) for each in devices]

    def missed(tails: tuple[float, float]) -> float:
        shares = []
        for place, (wrong, excused) in enumerate(parts):
            low, high = _quantiles(np.delete(own, place, axis=0), tails)
            inside = (low <= wrong) & (wrong <= np.maximum(high, excused))
            shares.append(inside.mean())
        low, high = _quantiles(own, tails)
        mean = abs(float(np.mean(shares)) - WANTED)
        return _outside(shares) + OF_MEAN * mean + OF_WIDTH * (high - low)

    return _quantiles(own, min(product(LOW_TAILS, HIGH_TAILS), key=missed))


def _outside(shares: Sequence[float]) -> float:
    """How far coverage lies outside its range, in total."""
    return float(sum(max(LEAST - share, 0.0, share - MOST) for share in shares))


def _quantiles(own: np.ndarray, tails: tuple[float, float]) -> tuple[float, float]:
    """Quantiles of pooled errors; ``own`` [GPUs, points] quantiles of each."""
    low, high = np.quantile(own, tails)
    return float(min(low, -NARROWEST)), float(max(high, NARROWEST))
