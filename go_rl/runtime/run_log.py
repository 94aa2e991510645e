"""The log of a run: one JSON line a step, and TensorBoard's event file."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from tensorboardX.event_file_writer import EventsWriter
from tensorboardX.proto.event_pb2 import Event, SessionLog  # pyright: ignore[reportAttributeAccessIssue]
from tensorboardX.summary import scalar

from go_rl.core import TrainingError
from go_rl.core.files.whole_file import write_text, writing

FILE = "log.jsonl"
EVENTS = "tensorboard"
"""Folder of TensorBoard's files."""


class RunLog:
    """Appends to a run's log; on resuming, what came after the checkpoint is removed.

    Events are written in this thread: TensorBoard's own writer has one that dies when the disk is
    full, and then blocks whoever logs on.

    Raises:
        TrainingError: the folder cannot be written, or the disk is full; also in `write`, `close`.
    """

    def __init__(self, folder: str | Path, step: int = 0) -> None:
        self.path = Path(folder) / FILE
        with writing(self.path, TrainingError):
            events = self.path.parent / EVENTS
            events.mkdir(parents=True, exist_ok=True)
            self._keep_until(step)
            self._file = self.path.open("a", encoding="utf-8")
            self._events = EventsWriter(str(events / "events"))
            # TensorBoard drops what an earlier session logged from this step on.
            self._add(Event(session_log=SessionLog(status=SessionLog.START)), step)
            self._events.flush()

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Log numbers under a step."""
        with writing(self.path, TrainingError):
            self._file.write(json.dumps({"step": step, **values}) + "\n")
            self._file.flush()
            for name, value in values.items():
                self._add(Event(summary=scalar(name, value)), step)
            self._events.flush()

    def close(self) -> None:
        """Let go of the files; everything is written already."""
        with suppress(OSError):  # a full disk, which was reported
            self._file.close()
        with suppress(OSError):
            self._events.close()

    def _add(self, event: Event, step: int) -> None:
        event.wall_time, event.step = time.time(), step
        self._events.write_event(event)

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
