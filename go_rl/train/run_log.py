"""The log of a run: one JSON line a step, and TensorBoard's event file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from tensorboardX import SummaryWriter

from go_rl.core import TrainingError
from go_rl.core.whole_file import write_text

FILE = "log.jsonl"


class RunLog:
    """Appends to a run's log; on resuming, what came after the checkpoint is struck out."""

    def __init__(self, folder: str | Path, step: int = 0) -> None:
        self.path = Path(folder) / FILE
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._keep_until(step)
        except OSError as error:
            raise TrainingError(f"{self.path}: cannot be written ({error.strerror})") from error
        self._events = SummaryWriter(
            str(self.path.parent / "tensorboard"), purge_step=step, write_to_disk=True
        )
        self._file = self.path.open("a", encoding="utf-8")

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Log numbers under a step."""
        self._file.write(json.dumps({"step": step, **values}) + "\n")
        self._file.flush()
        for name, value in values.items():
            self._events.add_scalar(name, value, step)

    def close(self) -> None:
        """Write out what is buffered."""
        self._file.close()
        self._events.close()

    def _keep_until(self, step: int) -> None:
        if not self.path.exists():
            return
        kept = [line for line in self.path.read_text().splitlines() if _step(line) <= step]
        write_text(self.path, "".join(f"{line}\n" for line in kept))


def _step(line: str) -> float:
    """The step of a line; a line that was cut off counts as later than any."""
    try:
        return float(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError):
        return float("inf")
