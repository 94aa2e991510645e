"""DynaTune: the upper confidence bound of the latency reduction that a belief predicts (Zhang et
al., ICLR 2021, section 4.2)."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, log, sqrt

from go_rl.tuning.loop.schedulers.predicted_gains import MILLISECONDS, GainScheduler
from go_rl.tuning.loop.tuning_state import TuningState

DYNATUNE, RELATIVE = "dynatune", "dynatune-relative"
"""Names: the bonus in milliseconds as published, or in proportion to the network's latency."""
UNPULLED = inf
"""The score γ of an operator that never had a slot: each gets one before any has two."""
SHORT = 1e-3
"""Seconds of the network, at first, below which the constant is `EXPLORATION_SHORT`."""
EXPLORATION, EXPLORATION_SHORT = 2.0, 0.2
"""The constant C (DynaTune, section 5)."""
SCALE = 1e-3
"""Share of the network's latency that stands for a millisecond in the relative bonus."""


@dataclass(frozen=True, eq=False)
class UpperConfidenceBound(GainScheduler):
    """Gives slot t to the operator with the greatest r + √(C · ln t / n): r milliseconds predicted
    to be gained in the network, n its slots so far. The repeat count multiplies r only. C is one
    number for all operators: with several, those of small C would have no slot until the others are
    finished."""

    relative: bool = False
    """Whether the bonus is in proportion to the network's latency."""

    def promising(self, state: TuningState) -> int:
        return max(state.unfinished, key=lambda k: self.score(state, k))

    def score(self, state: TuningState, operator: int) -> float:
        """Return the bound of an operator, in milliseconds."""
        slots = state.operators[operator].slots
        if slots == 0:
            return UNPULLED
        bonus = self.scale(state) * sqrt(log(state.slot + 1) / slots)
        return self.gains.gain(state, operator) + bonus

    def scale(self, state: TuningState) -> float:
        """Return √C, in milliseconds."""
        if self.relative:
            return SCALE * MILLISECONDS * state.latency * sqrt(EXPLORATION)
        return sqrt(EXPLORATION_SHORT if state.untuned_latency < SHORT else EXPLORATION)
