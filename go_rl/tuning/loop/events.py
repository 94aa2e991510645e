"""`TuningListener`: who is told what tuning does, such as a live view."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from go_rl.tuning.loop.nouns import Trial
from go_rl.tuning.loop.tuning_state import TuningState


@dataclass(frozen=True)
class SlotReport:
    """A slot that is over."""

    number: int
    """From 1."""
    operator: int
    """Whom it was given."""
    seconds: float
    """Of the clock."""
    trials: int
    """Measured in it."""
    gain: float
    """Seconds by which the network's latency fell."""
    predicted: float | None
    """Seconds by which the scheduler had predicted it would; None: it predicts nothing."""
    scheduling: float
    """Seconds of the wall that the choice took."""
    lapsed: bool = False
    """A static scheme gave it to an operator that is finished."""


@runtime_checkable
class TuningListener(Protocol):
    """Told of trials and slots as they happen, in the same order in every run of the same seed.
    Batches that a resumed run reads back are not told."""

    def on_trial(self, state: TuningState, operator: int, trial: Trial) -> None:
        """Take note of a measured trial; ``state`` has its whole batch."""
        ...

    def on_slot(self, state: TuningState, report: SlotReport) -> None:
        """Take note of the end of a slot."""
        ...


class Unheard:
    """Nobody listens."""

    def on_trial(self, state: TuningState, operator: int, trial: Trial) -> None:
        """Do nothing."""

    def on_slot(self, state: TuningState, report: SlotReport) -> None:
        """Do nothing."""
