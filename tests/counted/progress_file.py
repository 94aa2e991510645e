"""What was tried so far, one file a suite: batches of trials, a JSON line each.

A line is appended whole and flushed to disk; a line cut off by a kill is dropped when read.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .suite import Failure, Suite
from .trial import Batch


@dataclass
class Record:
    """The trials of a suite so far."""

    commit: dict[int, str] = field(default_factory=dict)
    """Index of each trial run -> the commit it last ran on."""
    failures: dict[int, Failure] = field(default_factory=dict)
    """Index -> how it failed when it last ran."""
    cpu_seconds: float = 0.0

    def todo(self, index: int, commit: str) -> bool:
        """Whether a trial was never run, or failed on another commit than this one."""
        failed_before = index in self.failures and self.commit[index] != commit
        return index not in self.commit or failed_before


class ProgressFile:
    """The record of one suite in a folder."""

    def __init__(self, folder: Path, suite: Suite) -> None:
        self.suite = suite
        self.path = folder / f"{suite.name}.jsonl"

    def read(self) -> Record:
        """Return what was run; later lines overrule earlier ones."""
        record = Record()
        for line in self._lines():
            for index in line["indices"]:
                record.commit[index] = line["commit"]
                record.failures.pop(index, None)
            for index, what in line["failures"]:
                record.failures[index] = Failure(self.suite.name, index, what)
            record.cpu_seconds += line["cpu_seconds"]
        return record

    def append(self, batch: Batch, commit: str) -> None:
        """Add a batch that was run on a commit."""
        line = {
            "count": self.suite.count,
            "commit": commit,
            "cpu_seconds": round(batch.cpu_seconds, 3),
            "failures": [[failure.index, failure.what] for failure in batch.failures],
            "indices": batch.indices,
        }
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab") as file:
            if file.tell() and not self._ends_in_a_line():
                file.write(b"\n")
            file.write(json.dumps(line).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def _ends_in_a_line(self) -> bool:
        with self.path.open("rb") as file:
            file.seek(-1, os.SEEK_END)
            return file.read(1) == b"\n"

    def _lines(self) -> Iterator[dict[str, Any]]:
        """Whole lines of trials that count as many as today's."""
        if not self.path.exists():
            return
        for text in self.path.read_bytes().splitlines():
            try:
                line = json.loads(text)
            except ValueError:
                continue  # cut off by a kill
            if line["count"] == self.suite.count:
                yield line
