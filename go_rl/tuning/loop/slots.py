"""`SlotConfig`: slots of tuning time, batches, and the end of an operator."""

from __future__ import annotations

from dataclasses import dataclass

from go_rl.core.config_checks import COUNT, FINITE_POSITIVE, PART, SEED, check_ranges
from go_rl.tuning.config import FirstRound, TuningError

LONGEST_SLOT = 100.0
"""Seconds of a slot, at most (DynaTune, section 5)."""
SLOTS_AN_OPERATOR = 10
"""A budget buys at least this many slots for each operator."""


@dataclass(frozen=True)
class SlotConfig:
    """Budget, batches and the end of an operator.

    Raises:
        TuningError: a number is out of range.
    """

    seconds: float = 1200.0
    """Budget, by the back end's clock."""
    trials: int | None = None
    """Trials, at most, those of earlier runs of the journal included; None: as many as the budget
    allows."""
    batch: int = 16
    """Candidates that the inner tuner proposes, and that are measured, together."""
    patience: int = 200
    """Trials without improvement behind which an operator is finished."""
    seed: int = 0
    """Random seed of scheduler, belief and inner tuners."""
    heavy: float = 1.0
    """Share of the network's FLOP whose operators are tuned (`heavy_operators`); the others get one
    batch each, at the end, of candidates like those that were found (`go_rl.tuning.loop.reuse`)."""
    first_round: FirstRound = "slowest"
    """Order in which dynamic schedulers give each operator its first slot
    (`go_rl.tuning.loop.schedulers.scheduler`)."""
    slot: float | None = None
    """Seconds of a slot; None: `LONGEST_SLOT` or the budget over `SLOTS_AN_OPERATOR` slots an
    operator, whichever is less."""

    def __post_init__(self) -> None:
        check_ranges(
            self, "tuning", TuningError, seconds=FINITE_POSITIVE, trials=COUNT, batch=COUNT,
            patience=COUNT, heavy=PART, seed=SEED, slot=FINITE_POSITIVE,
        )  # fmt: skip

    def slot_seconds(self, operators: int) -> float:
        """Return the seconds of one slot; each slot has at least one batch of trials."""
        if self.slot is not None:
            return self.slot
        return min(LONGEST_SLOT, self.seconds / (SLOTS_AN_OPERATOR * operators))
