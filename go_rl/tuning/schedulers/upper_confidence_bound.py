"""DynaTune: the upper confidence bound of the latency reduction that a belief predicts (Zhang et
al., ICLR 2021, section 4.2)."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, log, sqrt

from go_rl.tuning.programs.tuning_state import TuningState
from go_rl.tuning.schedulers.predicted_gains import MILLISECONDS, PredictedGains, least_tried

UNPULLED = inf
"""The score γ of an operator that never had a slot: each gets one before any has two."""
SHORT = 1e-3
"""Seconds of one run, at first, below which the constant is `EXPLORATION_SHORT`."""
EXPLORATION, EXPLORATION_SHORT = 2.0, 0.2
"""The constant C (DynaTune, section 5)."""


@dataclass(frozen=True, eq=False)
class UpperConfidenceBound:
    """Gives slot t to the operator with the greatest r + √(C · ln t / n): r milliseconds predicted
    to be gained in the network, n its slots so far. The repeat count multiplies r only."""

    gains: PredictedGains
    name: str = "dynatune"
    dynamic: bool = True

    def choose(self, state: TuningState) -> int:
        """Return the operator of the next slot."""
        fresh = least_tried(state)
        if fresh:
            return fresh[0]
        return max(state.unfinished, key=lambda k: self.score(state, k))

    def score(self, state: TuningState, operator: int) -> float:
        """Return the bound of an operator, in milliseconds."""
        each = state.operators[operator]
        if each.slots == 0:
            return UNPULLED
        bonus = sqrt(exploration(each.first_seconds) * log(state.slot + 1) / each.slots)
        return self.gains.gain(state, operator) + bonus

    def predicted(self, state: TuningState, operator: int) -> float:
        """Return the seconds that a slot is predicted to gain."""
        return self.gains.gain(state, operator) / MILLISECONDS


def exploration(first_seconds: float | None) -> float:
    """Return the constant C of an operator by the seconds of its first schedule that worked."""
    short = first_seconds is not None and first_seconds < SHORT
    return EXPLORATION_SHORT if short else EXPLORATION
