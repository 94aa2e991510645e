"""`PredictedGains`: what a slot of each operator promises, by a belief."""

from __future__ import annotations

from dataclasses import dataclass, field

from go_rl.tuning.loop.belief.belief import Belief, CurvePrediction
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
