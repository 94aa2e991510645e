"""Effort of a training run so far, kept in its folder over interruptions."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from go_rl.core import CheckpointError
from go_rl.core.files.strict_json import read_json
from go_rl.core.files.whole_file import write_text
from go_rl.policy.effort import SECONDS_AN_HOUR, Effort
from go_rl.policy.learn.config import RunConfig

FILE = "effort.json"


class EffortLog:
    """Counts core-seconds of this process and samples, and adds them to those of the folder.

    Ray workers' cores are not counted.

    Raises:
        CheckpointError: the folder's file is damaged.
    """

    def __init__(self, folder: str | Path, config: RunConfig) -> None:
        """Go on counting what the folder's run has taken."""
        self.path, self._config = Path(folder) / FILE, config
        self._core_seconds, self._samples = self._read() if self.path.exists() else (0.0, 0)
        self._since = time.process_time()

    def count(self, samples: int = 0, elsewhere: float = 0.0) -> None:
        """Add samples, the time since the last call and that of other processes; all are on
        the disk when this returns."""
        now = time.process_time()
        self._core_seconds, self._since = self._core_seconds + now - self._since, now
        self._core_seconds += elsewhere
        self._samples += samples
        document = {"core_seconds": self._core_seconds, "samples": self._samples}
        write_text(self.path, json.dumps(document) + "\n")

    def card(self) -> dict[str, Any]:
        """Return the field of a card with what was counted."""
        hours = self._core_seconds / SECONDS_AN_HOUR
        return Effort(hours, self._samples, self._config.attempts).to_card()

    def _read(self) -> tuple[float, int]:
        try:
            found = read_json(self.path)
            return float(found["core_seconds"]), int(found["samples"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CheckpointError(
                f"{self.path}: is damaged ({error!r}); delete it, and the card of the weights will "
                "not say what the run took"
            ) from error
