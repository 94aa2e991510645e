"""The table of methods for a terminal, as Markdown, CSV and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from go_rl.compare.portfolio.method_rows import (
    COLUMNS,
    Row,
    cells,
    headings,
    reference_name,
    table_unit,
)
from go_rl.core import Plan
from go_rl.report.text_table import TextTable, csv_table, markdown_table


def json_rows(table: Sequence[Row]) -> list[dict[str, Any]]:
    """Return the rows as JSON objects; every number is finite or null."""
    return [asdict(row) for row in table]


def csv_text(table: Sequence[Row]) -> str:
    """Return the rows as CSV in SI units; an empty field stands for no number."""
    return csv_table(COLUMNS, (asdict(row).values() for row in table))


def markdown(table: Sequence[Row], objective: str) -> str:
    """Return the rows as a Markdown table."""
    unit = table_unit(table)
    rows = (cells(row, unit, objective) for row in table)
    heads = headings(unit, objective, reference_name(table))
    return markdown_table(heads, rows, words=("status",))


def text_table(table: Sequence[Row], best: Plan, title: str) -> TextTable:
    """Return the rows for a terminal; the row of the best plan is highlighted."""
    unit = table_unit(table)
    return TextTable(
        title=title,
        heads=headings(unit, best.objective, reference_name(table)),
        rows=[cells(row, unit, best.objective) for row in table],
        words=("status",),
        bold=frozenset(i for i, row in enumerate(table) if row.method == best.optimizer),
    )
