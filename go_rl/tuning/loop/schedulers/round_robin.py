"""Slots in circular order, static or with reallocation (DynaTune, sections 5.2 and 5.3)."""

from __future__ import annotations

from dataclasses import dataclass

from go_rl.tuning.loop.schedulers.scheduler import waiting_for_first_slot
from go_rl.tuning.loop.tuning_state import TuningState


@dataclass(frozen=True)
class RoundRobin:
    """Slots go to the operators in turn. The static form does not leave out finished ones, and
    keeps the network's order; the dynamic one begins as `first_round` says."""

    dynamic: bool

    @property
    def name(self) -> str:
        return "dynamic-round-robin" if self.dynamic else "round-robin"

    def choose(self, state: TuningState) -> int:
        if not self.dynamic:
            return state.arms[state.slot % len(state.arms)]
        if waiting := waiting_for_first_slot(state):
            return waiting[0]
        return min(state.unfinished, key=lambda k: state.operators[k].slots)

    def predicted(self, state: TuningState, operator: int) -> None:
        """Return None."""
