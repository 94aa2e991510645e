"""Cells and tables of text: CSV and Markdown."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterable, Sequence
from math import isfinite

Cell = str | float | int | None


def csv_table(columns: Sequence[str], rows: Iterable[Iterable[Cell]]) -> str:
    """Return rows as CSV; an empty field stands for no number."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow("" if _is_nothing(cell) else cell for cell in row)
    return text.getvalue()


def _is_nothing(cell: Cell) -> bool:
    return cell is None or (isinstance(cell, float) and not isfinite(cell))


def markdown_table(
    heads: Sequence[str], rows: Iterable[Sequence[str]], words: Collection[str] = ()
) -> str:
    """Return rows as a Markdown table; the first column and those of ``words`` are text, the rest
    numbers."""
    rule = ["---" if i == 0 or head in words else "---:" for i, head in enumerate(heads)]
    return "".join(f"| {' | '.join(line)} |\n" for line in (heads, rule, *rows))
