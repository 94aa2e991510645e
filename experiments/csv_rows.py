"""Tables of experiments as CSV: rows are frozen dataclasses of text, numbers and truth values."""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar, get_type_hints

import numpy as np

from go_rl.core import ReadError, TrainingError
from go_rl.report.file_tables import markdown_table


class OfRun(Protocol):
    """A row with the key of its run."""

    @property
    def run(self) -> str:
        """See `run_name`."""
        ...


R = TypeVar("R")
Run = TypeVar("Run", bound=OfRun)
TRUTH = {"True": True, "False": False}


def csv_text(kind: type[Any], rows: Iterable[Any]) -> str:
    """Return rows as a file holds them, with a heading; numbers have six digits."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(field.name for field in fields(kind))
    for row in rows:
        writer.writerow(cell_text(value) for value in asdict(row).values())
    return out.getvalue()


def rows_table(rows: Sequence[Any]) -> str:
    """Return rows as a Markdown table with the names of their fields."""
    texts = [[cell_text(value) for value in asdict(row).values()] for row in rows]
    return markdown_table([field.name for field in fields(rows[0])], texts)


def cell_text(value: object) -> str:
    """Return a value as a cell; numbers have six digits."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def read_rows(kind: type[R], path: Path) -> list[R]:
    """Return the rows of a file; none where there is no file.

    Raises:
        ReadError: the file has other columns, or a cell is no value of its column.
    """
    if not path.exists():
        return []
    types = get_type_hints(kind)
    names = [field.name for field in fields(kind)]  # pyright: ignore[reportArgumentType]
    with path.open(newline="") as file:
        lines = csv.reader(file)
        if (found := next(lines, [])) != names:
            raise ReadError(
                f"{path}: must have the columns {', '.join(names)}, not {', '.join(found)}; move "
                "it away, and its rows are made again"
            )
        return [kind(**_values(path, names, line, types)) for line in lines]


class GrowingTable(Generic[R]):
    """Rows in a CSV file that grows row by row."""

    def __init__(self, kind: type[R], path: Path) -> None:
        """Read the rows that are there; see `read_rows`."""
        self.path, self.kind, self.rows = path, kind, read_rows(kind, path)

    def has(self, *key: object) -> bool:
        """Whether a row with these first fields is there."""
        rows: list[Any] = list(self.rows)
        return any(tuple(asdict(row).values())[: len(key)] == key for row in rows)

    def add(self, row: R) -> None:
        """Append a row, to the file too; numbers keep all their digits."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            if not self.rows:
                writer.writerow(asdict(row))  # pyright: ignore[reportArgumentType]
            writer.writerow(asdict(row).values())  # pyright: ignore[reportArgumentType]
        self.rows.append(row)


def run_name(words: str, *data: np.ndarray) -> str:
    """Return a key that separates runs whose numbers are not comparable: of a text and of their
    data."""
    return hashlib.sha256(
        b"".join([words.encode(), *(each.tobytes() for each in data)])
    ).hexdigest()[:12]


def rows_of_run(kind: type[Run], path: Path, run: str) -> list[Run]:
    """Return the rows of a file, all of which must be of one run; none where there is no file.

    Raises:
        ReadError: see `read_rows`.
        TrainingError: rows are of another run.
    """
    rows = read_rows(kind, path)
    if any(row.run != run for row in rows):
        raise TrainingError(
            f"{path}: has rows of other data, another seed or other training; move the file away"
        )
    return rows


def _values(path: Path, names: list[str], line: list[str], types: dict[str, Any]) -> dict[str, Any]:
    try:
        cells = zip(names, line, strict=True)
        return {name: _value(types[name], cell) for name, cell in cells}
    except (ValueError, KeyError) as error:
        raise ReadError(f"{path}: the row {','.join(line)!r} is damaged ({error})") from error


def _value(kind: Any, cell: str) -> Any:
    """A cell by the type of its column; what is no number or truth value is text."""
    if kind is bool:
        return TRUTH[cell]
    return kind(cell) if kind in (int, float) else cell
