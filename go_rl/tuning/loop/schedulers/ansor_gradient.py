"""Ansor's task scheduler: gradient descent on the network's latency (Zheng et al., OSDI 2020,
section 6; constants of TVM's ``auto_scheduler/task_scheduler.py``)."""

from __future__ import annotations

from dataclasses import dataclass

from go_rl.tuning.loop.schedulers.scheduler import slot_rng, waiting_for_first_slot
from go_rl.tuning.loop.tuning_state import TuningState


@dataclass(frozen=True)
class AnsorGradient:
    """Gives the slot to the operator with the most negative approximate gradient, after one slot
    for each (`first_round`):

        repeats · [α (g(t) − g(t − Δ)) / Δ + (1 − α) (min(g(t) − g(t) / t, β · FLOP / F) − g(t))]

    where g(t) are the best seconds after t slots and F the best FLOP/s of any operator of its kind,
    where there is another.
    """

    alpha: float = 0.2
    """Weight of the past."""
    beta: float = 2.0
    """Factor by which an operator may stay behind the best of its kind."""
    window: int = 3
    """Slots Δ of the past."""

    def choose(self, state: TuningState) -> int:
        if waiting := waiting_for_first_slot(state):
            return waiting[0]
        unfinished = state.unfinished
        gradients = [self.gradient(state, k) for k in unfinished]
        if max(gradients) == min(gradients):
            return int(slot_rng(state).choice(unfinished))
        return unfinished[gradients.index(min(gradients))]

    def gradient(self, state: TuningState, operator: int) -> float:
        """Return the gradient: seconds of the network per slot, <= 0 where it falls."""
        each = state.operators[operator]
        best, ends = each.seconds, each.slot_ends
        backward = 0.0
        if len(ends) > self.window:
            backward = (ends[-1] - ends[-1 - self.window]) / self.window
        forward = min(best - best / each.slots, self._of_kind(state, operator)) - best
        slope = self.alpha * backward + (1 - self.alpha) * forward
        return each.operator.repeats * slope

    def _of_kind(self, state: TuningState, operator: int) -> float:
        """Return the seconds that operators of its kind promise; much where it is alone."""
        own = state.operators[operator].operator
        alike = [x for x in state.operators if x.operator.kind == own.kind]
        if len(alike) < 2:
            return self.beta * 1e30
        return self.beta * own.flops / max(x.operator.flops / x.seconds for x in alike)

    def predicted(self, state: TuningState, operator: int) -> None:
        """Return None: the gradient is a score rather than a prediction."""
