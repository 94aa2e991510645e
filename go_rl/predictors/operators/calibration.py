"""What a predictor of an unmeasured GPU is worth, learned by leaving out each measured one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from jaxtyping import Float64, Int

from go_rl.predictors.operators.examples import ERROR_GROUPS, GROUPS, STREAM_GROUP
from go_rl.predictors.operators.similarity import weights_of
from go_rl.programs.devices import DataSheet

DISTANCES = (0.3, 1.0, 2.0)
"""Candidates for the distances of `weights_of`."""
SHIFTS = np.linspace(-0.06, 0.03, 10)
"""Candidates for what is added to logarithms of seconds: percentage errors punish too much more
than too little; small, for few GPUs teach it."""
SPREAD = 0.1
"""Deviation of logarithms that even agreeing sources have."""
TAILS = (0.04, 0.96)
"""Quantiles of errors on left-out GPUs that bound a 90 % interval: wider than 0.05 and 0.95, for
few GPUs were left out."""


@dataclass(frozen=True)
class Calibration:
    """What was learned from left-out GPUs."""

    generation: tuple[float, ...]
    power: tuple[float, ...]
    """[groups] distances of `weights_of`."""
    shift: tuple[float, ...]
    """[error groups] added to logarithms of seconds."""
    low: tuple[float, ...]
    high: tuple[float, ...]
    """[error groups] bounds of the interval, in deviations."""


def group_of(error_group: int) -> int:
    """Return the index in `GROUPS` of one of `ERROR_GROUPS`."""
    name = ERROR_GROUPS[error_group]
    return GROUPS.index(name if name in GROUPS else STREAM_GROUP)


def blend(
    logs: Float64[np.ndarray, "D R"], weights: Float64[np.ndarray, "D R"]
) -> tuple[Float64[np.ndarray, "R"], Float64[np.ndarray, "R"]]:
    """Return [R] mean logarithm of seconds and its deviation between sources."""
    mean = (weights * logs).sum(0)
    spread = np.sqrt((weights * (logs - mean) ** 2).sum(0) + SPREAD**2)
    return mean, spread


def calibrate(
    logs: Float64[np.ndarray, "D R"],
    truth: Float64[np.ndarray, "R"],
    device: Int[np.ndarray, "R"],
    error_group: Int[np.ndarray, "R"],
    sheets: Sequence[DataSheet],
    known: Sequence[Sequence[int]],
) -> Calibration:
    """Return what leaving out each GPU teaches.

    Args:
        logs: [D, R] logarithms of seconds by the model of each GPU.
        truth: [R] measured ones.
        device: [R] index of the GPU on which a row was measured.
        error_group: [R] index in `ERROR_GROUPS`.
        sheets: [D] of the GPUs.
        known: of each group, which GPUs have a model of it.
    """
    group = np.array([group_of(each) for each in range(len(ERROR_GROUPS))])[error_group]
    chosen = [
        _distances(logs, truth, device, group == g, sheets, known[g]) for g in range(len(GROUPS))
    ]
    shift, low, high = [], [], []
    for each in range(len(ERROR_GROUPS)):
        rows = np.flatnonzero(error_group == each)
        own_group = group_of(each)
        mean, spread = left_out(
            logs[:, rows], device[rows], sheets, known[own_group], chosen[own_group]
        )
        error, own = truth[rows] - mean, device[rows]
        best = _best_shift(error, own)
        bounds = _quantiles((error - best) / spread, own)
        shift.append(best)
        low.append(bounds[0])
        high.append(bounds[1])
    generation, power = zip(*chosen, strict=True)
    return Calibration(generation, power, tuple(shift), tuple(low), tuple(high))


def left_out(
    logs: Float64[np.ndarray, "D R"], device: Int[np.ndarray, "R"], sheets: Sequence[DataSheet],
    known: Sequence[int], distances: tuple[float, float],
) -> tuple[Float64[np.ndarray, "R"], Float64[np.ndarray, "R"]]:  # fmt: skip
    """Return [R] mean and deviation of each row by the GPUs on which it was not measured."""
    weights = np.zeros((len(sheets), len(sheets)))
    for target in np.unique(device):
        others = [each for each in known if each != target]
        weights[others, target] = weights_of(
            sheets[target], [sheets[each] for each in others], *distances
        )
    return blend(logs, weights[:, device])


def _distances(
    logs: np.ndarray, truth: np.ndarray, device: np.ndarray, rows: np.ndarray,
    sheets: Sequence[DataSheet], known: Sequence[int],
) -> tuple[float, float]:  # fmt: skip
    """The distances of `weights_of` with the least mean error over left-out GPUs."""
    if not rows.any() or len(known) < 3:
        return DISTANCES[1], DISTANCES[1]

    def error(candidate: tuple[float, float]) -> float:
        mean, _ = left_out(logs[:, rows], device[rows], sheets, known, candidate)
        return _mean_by_device(np.abs(np.expm1(mean - truth[rows])), device[rows])

    return min(product(DISTANCES, DISTANCES), key=error)


def _best_shift(error: np.ndarray, device: np.ndarray) -> float:
    if not len(error):
        return 0.0
    means = [_mean_by_device(np.abs(np.expm1(shift - error)), device) for shift in SHIFTS]
    return float(SHIFTS[int(np.argmin(means))])


def _quantiles(error: np.ndarray, device: np.ndarray) -> tuple[float, float]:
    """Bounds of the errors, each GPU of equal weight."""
    if not len(error):
        return -3.0, 3.0
    points = np.linspace(0.0, 1.0, 1001)
    pooled = np.concatenate([np.quantile(error[device == d], points) for d in np.unique(device)])
    low, high = np.quantile(pooled, TAILS)
    return float(min(low, -0.05)), float(max(high, 0.05))


def _mean_by_device(errors: np.ndarray, device: np.ndarray) -> float:
    return float(np.mean([errors[device == each].mean() for each in np.unique(device)]))
