"""Softmax sampling over a belief (DynaTune, appendix A)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from go_rl.tuning.loop.schedulers.predicted_gains import MILLISECONDS, PredictedGains
from go_rl.tuning.loop.schedulers.scheduler import slot_rng, waiting_for_first_slot
from go_rl.tuning.loop.tuning_state import TuningState


@dataclass(frozen=True, eq=False)
class SoftmaxSampling:
    """Draws the operator with probability in proportion to exp(gain / temperature). Each gets one
    slot first."""

    gains: PredictedGains
    temperature: float = 1.0
    """Milliseconds; the paper states none."""
    name: str = "softmax"
    dynamic: bool = True

    def choose(self, state: TuningState) -> int:
        fresh = waiting_for_first_slot(state)
        if fresh:
            return fresh[0]
        gains = np.array([self.gains.gain(state, k) for k in state.unfinished]) / self.temperature
        weights = np.exp(gains - gains.max())
        return int(slot_rng(state).choice(state.unfinished, p=weights / weights.sum()))

    def predicted(self, state: TuningState, operator: int) -> float:
        """Return the seconds that a slot is predicted to gain."""
        return self.gains.gain(state, operator) / MILLISECONDS
