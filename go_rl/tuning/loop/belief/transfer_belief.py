"""`TransferBelief`: our own belief, an empirical prior over the curves of other operators.

Where a curve goes is read off what recorded curves did when they looked alike: after about as many
trials, with as much growth lately, as long without improvement, as far below the peak. Their growth
over the horizon, weighted by a Gaussian kernel (Nadaraya and Watson, 1964), is the prediction: no
family of curves is assumed, plateaus and jumps come as often as they did, and a fit takes
milliseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float64

from go_rl.tuning.config import TuningError
from go_rl.tuning.loop.belief.belief import CurvePrediction
from go_rl.tuning.loop.belief.curve_library import CurveLibrary

EVERY = 4
"""Trials between two compared moments of a recorded curve."""
BANDWIDTH = (0.3, 0.15, 0.15, 1.0)
"""Kernel widths of ln trials, recent growth, share of trials without improvement, ln share of
the peak."""
FEWEST = 30.0
"""Effective number of recorded moments behind a prediction; with fewer the kernel is widened."""


@dataclass(frozen=True, eq=False)
class TransferBelief:
    """Predicts by recorded curves.

    Raises:
        TuningError: no recorded curve is longer than `EVERY` trials.
    """

    library: CurveLibrary
    """Recorded curves, those of the tuned network left out where it is known."""

    def __post_init__(self) -> None:
        if not len(self._moments[0]):
            raise TuningError(f"no recorded curve is longer than {EVERY} trials")

    def predict(
        self, curve: Sequence[float], horizon: int, peak: float, seed: tuple[int, int]
    ) -> CurvePrediction:
        """Return what is believed (`go_rl.tuning.loop.belief.belief.Belief.predict`)."""
        values = np.asarray(curve, np.float64)
        values = values[values > 0] / peak
        contexts, growth = self._growth(horizon)
        squares = ((contexts - context(values)) / BANDWIDTH) ** 2
        weights = kernel_weights(squares.sum(1))
        best = float(values[-1])
        ends = np.minimum(best * np.exp(growth), 1.0)
        mean = float(weights @ ends)
        deviation = float(np.sqrt(weights @ (ends - mean) ** 2))
        improvement = max(mean - best, 0.0)
        return CurvePrediction(mean * peak, deviation * peak, improvement * peak)

    def _growth(self, horizon: int) -> tuple[np.ndarray, np.ndarray]:
        """Return contexts of all moments with a future of ``horizon`` trials (where none has, of as
        many as there are), and the logarithm of their growth."""
        contexts, place, left = self._moments
        whole = left >= min(horizon, int(left.max()))
        ahead = place[whole] + np.minimum(horizon, left[whole])
        return contexts[whole], self._logs[ahead] - self._logs[place[whole]]

    @cached_property
    def _logs(self) -> Float64[np.ndarray, "n"]:
        return np.log(np.concatenate(self.library.curves).astype(np.float64))

    @cached_property
    def _moments(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Contexts [M, 4], places in the row of all values [M], trials still to come [M]."""
        contexts, places, left, start = [], [], [], 0
        for curve in self.library.curves:
            values = curve.astype(np.float64)
            for end in range(EVERY, len(values), EVERY):
                contexts.append(context(values[:end]))
                places.append(start + end - 1)
                left.append(len(values) - end)
            start += len(values)
        return np.array(contexts).reshape(-1, 4), np.array(places, int), np.array(left, int)


def context(values: Float64[np.ndarray, "n"]) -> Float64[np.ndarray, "context"]:
    """Return what a curve looks like: ln trials, growth over the latter half, share of trials since
    the last improvement, ln share of the peak."""
    count, best = len(values), values[-1]
    recent = np.log(best / values[(count - 1) // 2])
    stale = count - 1 - int(np.searchsorted(values, best))
    return np.array([np.log(count), recent, stale / count, np.log(best)])


def kernel_weights(squares: Float64[np.ndarray, "M"]) -> Float64[np.ndarray, "M"]:
    """Return [M] weights that sum to 1 of squared distances; the kernel is widened until `FEWEST`
    moments, or a tenth of all, count."""
    wanted = min(FEWEST, 0.1 * len(squares))
    width = 1.0
    while True:
        weights = np.exp(-0.5 * (squares - squares.min()) / width**2)
        weights /= weights.sum()
        if 1.0 / (weights**2).sum() >= wanted:
            return weights
        width *= 1.5
