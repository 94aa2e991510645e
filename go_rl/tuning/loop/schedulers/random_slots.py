"""Slots at random, static or with reallocation (DynaTune, sections 5.2 and 5.3)."""

from __future__ import annotations

from dataclasses import dataclass

from go_rl.tuning.loop.schedulers.scheduler import slot_rng, waiting_for_first_slot
from go_rl.tuning.loop.tuning_state import TuningState


@dataclass(frozen=True)
class RandomSlots:
    """Each slot goes to a random operator. The static form draws finished ones, too; the dynamic
    one gives each operator one slot first (`first_round`)."""

    dynamic: bool

    @property
    def name(self) -> str:
        return "dynamic-random" if self.dynamic else "random"

    def choose(self, state: TuningState) -> int:
        if self.dynamic and (waiting := waiting_for_first_slot(state)):
            return waiting[0]
        choice = state.unfinished if self.dynamic else state.arms
        return int(slot_rng(state).choice(choice))

    def predicted(self, state: TuningState, operator: int) -> None:
        """Return None."""
