"""ε-greedy over a belief (DynaTune, appendix A)."""

from __future__ import annotations

from dataclasses import dataclass

from go_rl.tuning.loop.schedulers.predicted_gains import MILLISECONDS, PredictedGains
from go_rl.tuning.loop.schedulers.scheduler import slot_rng, waiting_for_first_slot
from go_rl.tuning.loop.tuning_state import TuningState


@dataclass(frozen=True, eq=False)
class EpsilonGreedy:
    """Gives the slot to the operator with the greatest predicted gain; a random one with
    probability ε. Each gets one slot first."""

    gains: PredictedGains
    epsilon: float = 0.05
    name: str = "epsilon-greedy"
    dynamic: bool = True

    def choose(self, state: TuningState) -> int:
        fresh, rng = waiting_for_first_slot(state), slot_rng(state)
        if fresh:
            return fresh[0]
        if rng.random() < self.epsilon:
            return int(rng.choice(state.unfinished))
        return max(state.unfinished, key=lambda k: self.gains.gain(state, k))

    def predicted(self, state: TuningState, operator: int) -> float:
        """Return the seconds that a slot is predicted to gain."""
        return self.gains.gain(state, operator) / MILLISECONDS
