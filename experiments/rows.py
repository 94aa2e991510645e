"""Rows of results as files: frozen dataclasses in CSV, or in lines of JSON if they have lists."""

from __future__ import annotations

import csv
import hashlib
import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, Generic, TypeVar, get_type_hints

import numpy as np

from experiments.page_text import Column, markdown_table, shown
from go_rl.core import ReadError, TrainingError
from go_rl.report.text_table import csv_table

R = TypeVar("R")
K = TypeVar("K")
TRUTH = {"True": True, "False": False}


class KeptRows(Generic[R]):
    """Rows in a file that grows row by row, so that a script goes on where it stopped."""

    def __init__(self, kind: type[R], path: Path, run: str = "") -> None:
        """Read the rows that are there; see `read_rows`.

        Args:
            kind: of the rows.
            path: of the file.
            run: key (`run_name`) that the field ``run`` of every row must have; "": any.

        Raises:
            TrainingError: rows are of another run.
        """
        self.path, self.kind, self.rows = path, kind, read_rows(kind, path)
        if run and not all(getattr(row, "run", "") == run for row in self.rows):
            raise TrainingError(
                f"{path}: has rows of other data, another seed or other training; move the file "
                "away"
            )

    def has(self, *key: object, names: Sequence[str] = ()) -> bool:
        """Whether a row with these fields is there: the first ones, or those of ``names``."""
        first = names or _names(self.kind)[: len(key)]
        return any(tuple(getattr(row, name) for name in first) == key for row in self.rows)

    def fill(
        self,
        keys: Iterable[tuple[Any, ...]],
        make: Callable[..., R | Iterable[R]],
        names: Sequence[str] = (),
    ) -> None:
        """Make the rows of each key that has none; each is kept as soon as it is made.

        Args:
            keys: values of the first fields, or of those of ``names``.
            make: returns the row of a key, whose values are its arguments, or yields the rows.
            names: see `has`.
        """
        for key in keys:
            if not self.has(*key, names=names):
                made = make(*key)
                rows: Any = made if isinstance(made, Iterable) else [made]
                for row in rows:
                    self.add(row)

    def add(self, row: R) -> None:
        """Print a row, without its curve, and append it; numbers keep all their digits."""
        known: dict[str, Any] = asdict(row)  # pyright: ignore[reportArgumentType]
        print({name: value for name, value in known.items() if name != "curve"}, flush=True)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", newline="") as file:
            if self.path.suffix == ".jsonl":
                file.write(json.dumps(known) + "\n")
            else:
                writer = csv.writer(file, lineterminator="\n")
                writer.writerows([known.values()] if self.rows else [known, known.values()])
        self.rows.append(row)


def read_rows(kind: type[R], path: Path) -> list[R]:
    """Return the rows of a file; none where there is no file.

    Raises:
        ReadError: the file has other columns, or a cell is no value of its column.
    """
    if not path.exists():
        return []
    if path.suffix == ".jsonl":
        return [kind(**json.loads(line)) for line in path.read_text().splitlines()]
    types, names = get_type_hints(kind), _names(kind)
    with path.open(newline="") as file:
        lines = csv.reader(file)
        if (found := next(lines, [])) != names:
            raise ReadError(
                f"{path}: must have the columns {', '.join(names)}, not {', '.join(found)}; move "
                "it away, and its rows are made again"
            )
        return [kind(**_values(path, names, line, types)) for line in lines]


def csv_text(kind: type[Any], rows: Iterable[Any]) -> str:
    """Return rows as a file holds them, with a heading; numbers have six digits."""
    return csv_table(_names(kind), (map(shown, asdict(row).values()) for row in rows))


def grouped(rows: Iterable[R], key: Callable[[R], K]) -> dict[K, list[R]]:
    """Return rows by key, keys in the order of their first rows."""
    found: dict[K, list[R]] = {}
    for row in rows:
        found.setdefault(key(row), []).append(row)
    return found


def in_turn(rows: Iterable[R], key: Callable[[R], object]) -> list[R]:
    """Return rows so that keys take turns, in the order given within each."""
    met: Counter[object] = Counter()
    turns: list[tuple[int, R]] = []
    for row in rows:
        turns.append((met[key(row)], row))
        met[key(row)] += 1
    return [row for _, row in sorted(turns, key=lambda turn: turn[0])]


def rows_table(rows: Sequence[Any], without: Collection[str] = ()) -> str:
    """Return rows, at least one, as a Markdown table.

    A field annotated with a `Column` has its heading and format, others their name and six digits;
    text stands on the left. Fields in ``without`` are left out.
    """
    hints = get_type_hints(type(rows[0]), include_extras=True)
    columns = {name: _column(hint) for name, hint in hints.items() if name not in without}
    heads = {name: column.heading or name for name, column in columns.items()}
    kinds = get_type_hints(type(rows[0]))
    words = tuple(head for name, head in heads.items() if kinds[name] is str)
    lines = ([shown(getattr(row, n), each.form) for n, each in columns.items()] for row in rows)
    return markdown_table(list(heads.values()), lines, words)


def run_name(words: str, *data: np.ndarray) -> str:
    """Return a key that separates runs whose numbers are not comparable: of a text and of their
    data."""
    return hashlib.sha256(
        b"".join([words.encode(), *(each.tobytes() for each in data)])
    ).hexdigest()[:12]


def _names(kind: type[Any]) -> list[str]:
    return [each.name for each in fields(kind)]


def _column(hint: Any) -> Column:
    found = [each for each in getattr(hint, "__metadata__", ()) if isinstance(each, Column)]
    return found[0] if found else Column()


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
