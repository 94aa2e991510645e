"""What tuning of any kind tells whoever watches it: a dashboard, a log."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class PartProgress:
    """One part of a model: an operator, a kernel."""

    name: str
    uses: int
    """How often the model runs it."""
    seconds: float
    """Best of one run so far."""
    default_seconds: float
    """Of one run before tuning."""
    trials: int
    share: float
    """Share of the slots, or of the time, that it was given."""
    predicted_gain: float | None = None
    """Seconds by which its last slot was predicted to shorten the model; None: no prediction."""


@dataclass(frozen=True)
class TuningProgress:
    """Tuning, at a moment."""

    model: str
    minutes: float
    """Of tuning so far."""
    of_minutes: float
    seconds: float
    """Best time of the model so far, as measured while tuning."""
    default_seconds: float
    """The same before tuning."""
    trials: int
    parts: tuple[PartProgress, ...] = ()
    doing: str = ""
    """What is done now."""

    @property
    def numbers(self) -> dict[str, float]:
        """What is logged as scalars."""
        found = {"latency_ms": 1e3 * self.seconds, "default_ms": 1e3 * self.default_seconds,
                 "minutes": self.minutes, "trials": float(self.trials)}  # fmt: skip
        for part in self.parts:
            found[f"best_ms/{part.name}"] = 1e3 * part.seconds
            found[f"share/{part.name}"] = part.share
            if part.predicted_gain is not None:
                found[f"predicted_gain_ms/{part.name}"] = 1e3 * part.predicted_gain
        return found


Watch = Callable[[TuningProgress], None]
"""Is told how far tuning is."""


def unwatched(_: TuningProgress) -> None:
    """Watch nothing."""
