"""Numbers and tables as the pages of results show them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from go_rl.report.text_table import markdown_table

NOTHING = "–"
"""Cell without a number."""
FOUR = ".4g"
"""Format of numbers of which four digits are worth reading."""


@dataclass(frozen=True)
class Column:
    """How a field of a row stands in a table: ``Annotated[float, Column("median ms", ".2f")]``."""

    heading: str = ""
    """Head of the column; the field's name where empty."""
    form: str = ""
    """Format of its numbers, such as ``.1%`` or ``{:.0f} ×``; six digits where empty."""


def shown(value: object, form: str = "") -> str:
    """Return a value as a cell; numbers have six digits unless a format says otherwise, which also
    makes a dash of NaN."""
    if form:
        told = form.format(value) if "{" in form else format(value, form)
        return NOTHING if value != value else told
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def table_lines(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table in Markdown."""
    return markdown_table(heads, rows).splitlines()


def grid_table(
    corner: str,
    rows: Mapping[str, Any] | Iterable[Any],
    columns: Mapping[str, Any] | Iterable[Any],
    cell_of: Callable[[Any, Any], str] = lambda row, column: column(row),
) -> str:
    """Return a Markdown table of what is known of each row and column.

    Args:
        corner: head of the column of names.
        rows: by name, or names.
        columns: by head, or heads.
        cell_of: text of a row and a column; by default a column is what makes a cell of a row.
    """
    down, across = (
        each if isinstance(each, Mapping) else {str(part): part for part in each}
        for each in (rows, columns)
    )
    lines = (
        [name, *(cell_of(row, each) for each in across.values())] for name, row in down.items()
    )
    return markdown_table([corner, *across], lines)


def cell(value: float, digits: int = 3) -> str:
    """Return a number with so many decimals, or a dash for NaN."""
    return shown(float(value), f".{digits}f")
