"""Progress of tuning of any kind, for a dashboard and for logs: TensorBoard's event files and JSON
lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from go_rl.runtime.run_log import RunLog

MILLISECONDS = 1000.0
"""Steps of a log in a second of tuning: a run that goes on continues behind the last one."""


@dataclass(frozen=True)
class PartProgress:
    """Progress of a part of a model: an operator or a kernel."""

    name: str
    uses: int
    """Runs in one run of the model."""
    seconds: float
    """Best seconds of one run so far."""
    default_seconds: float
    """Seconds of one run before tuning."""
    trials: int
    share: float
    """Share of the slots, or of the time, that the part was given."""
    predicted_gain: float | None = None
    """Predicted gain of the last slot, in seconds of the model; None: no prediction."""


@dataclass(frozen=True)
class TuningProgress:
    """Progress of tuning at one moment."""

    model: str
    minutes: float
    """Minutes of tuning so far."""
    of_minutes: float
    seconds: float
    """Best seconds of the model so far, as measured while tuning."""
    default_seconds: float
    """Seconds of the model before tuning."""
    trials: int
    parts: tuple[PartProgress, ...] = ()
    doing: str = ""
    """Current activity, for people."""

    @property
    def numbers(self) -> dict[str, float]:
        """Scalars of a log by name."""
        found = {"latency_ms": 1e3 * self.seconds, "default_ms": 1e3 * self.default_seconds,
                 "minutes": self.minutes, "trials": float(self.trials)}  # fmt: skip
        for part in self.parts:
            found[f"best_ms/{part.name}"] = 1e3 * part.seconds
            found[f"share/{part.name}"] = part.share
            if part.predicted_gain is not None:
                found[f"predicted_gain_ms/{part.name}"] = 1e3 * part.predicted_gain
        return found


Watch = Callable[[TuningProgress], None]
"""Callback that takes the progress of tuning."""


def unwatched(_: TuningProgress) -> None:
    """Watch nothing."""


@contextmanager
def logged(folder: Path, watch: Watch) -> Iterator[Watch]:
    """Yield what logs progress in a folder and tells ``watch``; the log is made by the first.

    Raises:
        TrainingError: the log cannot be written.
    """
    from go_rl.runtime.run_log import RunLog

    logs: list[RunLog] = []

    def both(progress: TuningProgress) -> None:
        step = round(60.0 * MILLISECONDS * progress.minutes)
        if not logs:
            logs.append(RunLog(folder, step))
        logs[0].write(step, progress.numbers)
        watch(progress)

    try:
        yield both
    finally:
        for log in logs:
            log.close()
