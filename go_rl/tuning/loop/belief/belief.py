"""`Belief`: what an operator's curve of best performance will be some trials from now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import nan
from typing import Protocol, runtime_checkable


@dataclass(frozen=True)
class CurvePrediction:
    """Best FLOP/s at the end of some more trials."""

    mean: float
    deviation: float
    """Standard deviation."""
    improvement: float
    """Expected positive improvement over the best known (Brochu et al., 2010), >= 0."""
    acceptance: float = nan
    """Mean acceptance of the sampler's walkers; NaN where nothing was sampled."""


@runtime_checkable
class Belief(Protocol):
    """Predicts from one operator's curve; equal arguments give equal predictions."""

    def predict(
        self, curve: Sequence[float], horizon: int, peak: float, seed: tuple[int, int]
    ) -> CurvePrediction:
        """Return what is believed of the performance ``horizon`` trials after the curve's end.

        Args:
            curve: best FLOP/s known after each trial so far, non-decreasing; the last is above 0.
            horizon: trials to come, >= 1.
            peak: FLOP/s that no operator exceeds.
            seed: of the run, and of the operator.
        """
        ...
