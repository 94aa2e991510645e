"""Prices of a network's launches on a GPU of which only the data sheet is known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float64

from go_rl.predictors.operators.examples import OperatorInputs, error_groups
from go_rl.predictors.operators.predictor import OperatorPredictor
from go_rl.programs.devices import DataSheet
from go_rl.programs.launches import Launches

STREAMED_SHARE = 0.85
"""Of the bandwidth, at which a fused chain moves its bytes."""
BETWEEN_GROUPS = 0.5
"""Correlation that is assumed between the errors of, say, products and softmax on one device; of
operators of one group it is taken to be 1."""


@dataclass(frozen=True, eq=False)
class LaunchPrices:
    """Prices of ``L`` launches on one device, seconds."""

    seconds: Float64[np.ndarray, "L"]
    low: Float64[np.ndarray, "L"]
    high: Float64[np.ndarray, "L"]
    """[L] bounds of a 90 % interval."""
    unlike: Bool[np.ndarray, "L"]


def launch_prices(
    launches: Launches, sheet: DataSheet, predictor: OperatorPredictor
) -> LaunchPrices:
    """Return the price of each launch; equal ones are predicted once."""
    rows, which = launches.distinct
    inputs = OperatorInputs(rows, (sheet,), np.zeros(len(rows), np.int64))
    found = predictor.interval(inputs)
    extra = launches.extra_bytes / (STREAMED_SHARE * sheet.memory_bandwidth)
    return LaunchPrices(
        found.seconds[which] + extra,
        found.low[which] + extra,
        found.high[which] + extra,
        found.unlike[which] | launches.unlike,
    )


def total_bounds(launches: Launches, prices: LaunchPrices, total: float) -> tuple[float, float]:
    """Return bounds of a 90 % interval of a sum of launches.

    A device that is faster than predicted at one product is so at all: errors of a group of
    operators add up, those of different groups partly cancel (`BETWEEN_GROUPS`).
    """
    kind = error_groups(launches.rows)
    bounds = []
    for sides in (prices.seconds - prices.low, prices.high - prices.seconds):
        each = np.bincount(kind, sides)
        joint = BETWEEN_GROUPS * each.sum() ** 2 + (1 - BETWEEN_GROUPS) * (each**2).sum()
        bounds.append(float(np.sqrt(joint)))
    return max(0.0, total - bounds[0]), total + bounds[1]
