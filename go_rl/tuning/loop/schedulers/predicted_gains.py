"""Schedulers that ask a belief what a slot of each operator promises: `PredictedGains`, and its two
simple users, ε-greedy and softmax sampling (DynaTune, appendix A)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

import numpy as np

from go_rl.tuning.loop.belief.belief import Belief, CurvePrediction
from go_rl.tuning.loop.schedulers.scheduler import slot_rng, waiting_for_first_slot
from go_rl.tuning.loop.tuning_state import TuningState

MILLISECONDS = 1e3
"""Milliseconds in a second."""


@dataclass(eq=False)
class PredictedGains:
    """Predictions by operator. A belief is fitted again only when its operator has had trials: a
    prediction depends on its curve alone."""

    belief: Belief
    _kept: dict[int, tuple[int, CurvePrediction]] = field(default_factory=dict)

    def prediction(self, state: TuningState, operator: int) -> CurvePrediction:
        """Return the performance predicted for the end of the operator's next slot."""
        each = state.operators[operator]
        count, kept = self._kept.get(operator, (-1, None))
        if kept is None or count != len(each.curve):
            horizon = each.horizon(state.slot_seconds, state.config.batch)
            kept = self.belief.predict(
                each.curve, horizon, state.peak_flops, (state.config.seed, operator)
            )
            self._kept[operator] = len(each.curve), kept
        return kept

    def gain(self, state: TuningState, operator: int) -> float:
        """Return milliseconds by which a slot is expected to shorten the network: those of one run,
        from the best performance known to that plus its expected improvement, times the repeat
        count."""
        each = state.operators[operator]
        better = each.curve[-1] + self.prediction(state, operator).improvement
        seconds = each.seconds - each.operator.flops / better
        return MILLISECONDS * each.operator.repeats * seconds


@dataclass(frozen=True, eq=False)
class GainScheduler(ABC):
    """Abstract: chooses by predicted gains, after one slot for each operator (`first_round`)."""

    gains: PredictedGains

    def choose(self, state: TuningState) -> int:
        fresh = waiting_for_first_slot(state)
        return fresh[0] if fresh else self.promising(state)

    @abstractmethod
    def promising(self, state: TuningState) -> int:
        """Return an unfinished operator; each of them had a slot."""

    def predicted(self, state: TuningState, operator: int) -> float:
        """Return the seconds that a slot is predicted to gain."""
        return self.gains.gain(state, operator) / MILLISECONDS


@dataclass(frozen=True, eq=False)
class EpsilonGreedy(GainScheduler):
    """Gives the slot to the operator with the greatest predicted gain; a random one with
    probability ε."""

    epsilon: float = 0.05

    def promising(self, state: TuningState) -> int:
        rng = slot_rng(state)
        if rng.random() < self.epsilon:
            return int(rng.choice(state.unfinished))
        return max(state.unfinished, key=lambda k: self.gains.gain(state, k))


@dataclass(frozen=True, eq=False)
class SoftmaxSampling(GainScheduler):
    """Draws the operator with probability in proportion to exp(gain / temperature)."""

    temperature: float = 1.0
    """Milliseconds; the paper states none."""

    def promising(self, state: TuningState) -> int:
        gains = np.array([self.gains.gain(state, k) for k in state.unfinished]) / self.temperature
        weights = np.exp(gains - gains.max())
        return int(slot_rng(state).choice(state.unfinished, p=weights / weights.sum()))
