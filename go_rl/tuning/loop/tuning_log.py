"""Progress of tuning in TensorBoard's event files, and as JSON lines."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from go_rl.runtime.run_log import RunLog
from go_rl.tuning.loop.progress import TuningProgress, Watch

MILLISECONDS = 1000.0
"""Steps of the log in a second of tuning: a run that goes on continues behind the last one."""


@contextmanager
def logged(folder: Path, watch: Watch) -> Iterator[Watch]:
    """Yield what logs progress in a folder and tells ``watch``; the log is made by the first.

    Raises:
        TrainingError: the log cannot be written.
    """
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
