"""Tables of measured operators, one packed CSV file for each kind, as ``go-rl train operators``
reads them."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path
from typing import Any

Row = dict[str, Any]


class Tables:
    """Rows by kind; `write` replaces the files of a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.rows: dict[str, list[Row]] = {}

    def __len__(self) -> int:
        return sum(map(len, self.rows.values()))

    def add(self, kind: str, row: Row) -> None:
        """Add a row."""
        self.rows.setdefault(kind, []).append(row)

    def write(self) -> None:
        """Write all rows."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for kind, rows in self.rows.items():
            with gzip.open(self.folder / f"{kind}.csv.gz", "wt", newline="") as file:
                writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
                writer.writeheader()
                writer.writerows(rows)
