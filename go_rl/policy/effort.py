"""`Effort`: what training took, in the card of every weights file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from go_rl.core.printable import counted

SECONDS_AN_HOUR = 3600.0
FIELD = "effort"
"""Field of a card that holds the effort."""
UNRECORDED = "effort of training: not recorded"


@dataclass(frozen=True)
class Effort:
    """Effort of one training run."""

    core_hours: float
    """Processor time of the training process, hours of one core."""
    samples: int
    """Plans priced to learn from; those of validation are not counted."""
    attempts: int
    """Training runs that were tried for these weights, this one included."""

    @property
    def sentence(self) -> str:
        """Sentence that a command prints."""
        return (
            f"effort of training: {self.core_hours:.3g} core-hours, "
            f"{counted(self.samples, 'sample')}, {counted(self.attempts, 'attempt')}"
        )

    def to_card(self) -> dict[str, Any]:
        """Return the fields for a card."""
        return {FIELD: asdict(self)}


def effort_of(card: Mapping[str, Any]) -> Effort | None:
    """Return the effort in a card; None: it has none, or not as `Effort` has it."""
    found = card.get(FIELD)
    try:
        values = float(found["core_hours"]), int(found["samples"]), int(found["attempts"])  # pyright: ignore[reportOptionalSubscript]
    except (KeyError, TypeError, ValueError):
        return None
    return Effort(*values)


def effort_sentence(card: Mapping[str, Any]) -> str:
    """Return what a command prints of a card."""
    effort = effort_of(card)
    return UNRECORDED if effort is None else effort.sentence
