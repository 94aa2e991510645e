"""Result folder of tuning of any kind, and the place of its records."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import astuple, fields
from pathlib import Path
from typing import Any

from go_rl.core.files.whole_file import write_text
from go_rl.runtime.records import RECORDS, database_of

JOURNAL, SUMMARY, CURVE = "journal.jsonl", "tuned.json", "curve.csv"


def records_of(records: str | Path | None, folder: Path) -> tuple[str | Path, Path]:
    """Return the database of a run's records, and the folder of the core's reference speed.

    Args:
        records: a folder, an SQLite file or a database URL; None: the run's own.
        folder: of the run.
    """
    if records is None:
        return folder / RECORDS, folder
    database = database_of(records)
    if isinstance(database, Path) and not database.suffix and not database.exists():
        database = database / RECORDS  # a folder that is not there yet
    if isinstance(database, Path) and database.name == RECORDS:
        return database, database.parent
    return database, folder


def write_results(folder: Path, curve: Sequence[Any], documents: Mapping[str, Any]) -> None:
    """Write the points of a curve (dataclasses of one kind) and documents by the names of their
    files, each aside and renamed; the summary last."""
    table = io.StringIO()
    rows = csv.writer(table, lineterminator="\n")
    rows.writerow([field.name for field in fields(curve[0])])
    rows.writerows(astuple(point) for point in curve)
    write_text(folder / CURVE, table.getvalue())
    for name in sorted(documents, key=lambda each: each == SUMMARY):
        text = json.dumps(documents[name], indent=1, allow_nan=False)
        write_text(folder / name, text + "\n")
