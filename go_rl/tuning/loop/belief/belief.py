"""`Belief`: what an operator's curve of best performance will be some trials from now; beliefs by
name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import nan
from typing import Protocol, runtime_checkable

from go_rl.tuning.config import check_name
from go_rl.tuning.loop.belief.curve_families import FAMILIES

TRANSFER = "transfer"
BELIEFS = (*FAMILIES, TRANSFER)
"""Names: a family of curves, the default first, or our own that learned from recorded curves."""


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


def belief_of(name: str) -> Belief:
    """Return the belief of a name, one of `BELIEFS`.

    Raises:
        MissingDependencyError: emcee, which a family of curves needs, is not installed.
        TuningError: the name is unknown, or the recorded curves cannot be read.
    """
    check_name("belief", name, BELIEFS)
    if name in FAMILIES:
        from go_rl.tuning.loop.belief.curve_belief import CurveBelief

        return CurveBelief(family=name)
    from go_rl.tuning.loop.belief.curve_library import load_curves
    from go_rl.tuning.loop.belief.transfer_belief import TransferBelief

    return TransferBelief(load_curves())
