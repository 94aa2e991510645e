"""A file that keeps what is done so far, whatever kills the run: JSON, a line each."""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class LineFile:
    """Documents appended whole and flushed to disk; a line cut off by a kill is no line."""

    path: Path

    def append(self, document: dict[str, Any]) -> None:
        """Add a document as a line of its own."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab") as file:
            if file.tell() and not self._ends_in_a_line():
                file.write(b"\n")
            file.write(json.dumps(document).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for text in self.path.read_bytes().splitlines() if self.path.exists() else ():
            try:
                yield json.loads(text)
            except ValueError:
                continue  # cut off by a kill

    def _ends_in_a_line(self) -> bool:
        with self.path.open("rb") as file:
            file.seek(-1, os.SEEK_END)
            return file.read(1) == b"\n"
