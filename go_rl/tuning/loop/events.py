"""`TuningListener`: an observer of tuning, such as a live view."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from go_rl.tuning.loop.nouns import Trial
from go_rl.tuning.loop.tuning_state import TuningState


@dataclass(frozen=True)
class SlotReport:
    """A slot that is over."""

    operator: int
    """Operator that had the slot."""
    seconds: float
    """Seconds of the clock that the slot took."""
    predicted: float | None
    """Seconds by which the scheduler predicted that the network's latency would fall; None: it
    predicts nothing."""
    lapsed: bool = False
    """Whether a static scheme gave the slot to a finished operator."""


@runtime_checkable
class TuningListener(Protocol):
    """Observer of trials and slots as they happen, in the same order in every run of the same seed.
    Batches that a resumed run reads back are not told."""

    def on_trial(self, state: TuningState, operator: int, trial: Trial) -> None:
        """Take note of a measured trial; ``state`` has its whole batch."""
        ...

    def on_slot(self, state: TuningState, report: SlotReport) -> None:
        """Take note of the end of a slot."""
        ...


class Unheard:
    """Listener that ignores everything."""

    def on_trial(self, state: TuningState, operator: int, trial: Trial) -> None:
        """Do nothing."""

    def on_slot(self, state: TuningState, report: SlotReport) -> None:
        """Do nothing."""
