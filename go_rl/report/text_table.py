"""Tables as text: for a terminal, where wide ones are split and only names that fill half a screen
are cut; and as CSV and Markdown."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite

from rich.cells import cell_len
from rich.table import Table

from go_rl.core.printable import abridged, name_line

EDGE, BETWEEN = 1, 3
"""Characters of a table's border, and of the space and line beside each column."""
PROSE = 24
"""Minimum width of a column of prose, which wraps."""
LONGEST_CELL = 400
"""Characters of a cell's line that are shown at most."""


@dataclass(frozen=True)
class TextTable:
    """Heads and cells as text; the first column says what a row is about."""

    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    words: Sequence[str] = ()
    """Heads of further columns that are flush left: texts."""
    prose: Sequence[str] = ()
    """Heads of those that may wrap between words."""
    bold: frozenset[int] = field(default_factory=frozenset)
    """Rows that are highlighted."""

    def tables(self, width: int) -> Iterator[Table]:
        """Yield tables of at most ``width`` characters: as many columns as fit, then the others
        beside the first column again. Where even one is too wide its cells are wrapped.

        Where columns do not fit, names of the first one lose their middle if they take more than
        half of the width. Characters that are not `printable` are escaped.
        """
        shown = self._shown(width)
        for number, columns in enumerate(shown._balanced(width)):
            yield shown._table(columns, "" if number else shown.title)

    def _shown(self, width: int) -> TextTable:
        """The table as it is printed: cells without control characters, the first short enough."""
        title = name_line(self.title, LONGEST_CELL)
        heads = [_lines(head) for head in self.heads]
        clean = replace(self, title=title, heads=heads, words=[*map(_lines, self.words)],
                        prose=[*map(_lines, self.prose)],
                        rows=[[*map(_lines, row)] for row in self.rows])  # fmt: skip
        longest = clean._longest_key(width)
        heads[0] = _lines(heads[0], longest)
        return replace(clean, rows=[[_lines(row[0], longest), *row[1:]] for row in clean.rows])

    def _longest_key(self, width: int) -> int:
        """Cells of the first column: what the others leave, at least half of two columns."""
        others = sum(map(self._width, range(1, len(self.heads))))
        columns = min(len(self.heads), 2)
        room = width - EDGE - columns * BETWEEN
        return max(1, room // columns, width - EDGE - BETWEEN - others)

    def _balanced(self, width: int) -> list[list[int]]:
        """As few parts as possible, of about equal width."""
        widths = [self._width(column) for column in range(len(self.heads))]
        parts = _parts(widths, width)
        for narrower in range(width - 1, 0, -1):
            split = _parts(widths, narrower)
            if len(split) > len(parts):
                break
            parts = split
        return parts

    def _width(self, column: int) -> int:
        texts = [self.heads[column], *(row[column] for row in self.rows)]
        widest = max(cell_len(line) for text in texts for line in text.split("\n"))
        prose = self.heads[column] in self.prose
        return BETWEEN + (min(widest, PROSE) if prose else widest)

    def _table(self, columns: Sequence[int], title: str) -> Table:
        table = Table(title=title or None, title_justify="left")
        for column in columns:
            head = self.heads[column]
            left = column == 0 or head in self.words or head in self.prose
            table.add_column(head, justify="left" if left else "right", overflow="fold",
                             no_wrap=False)  # fmt: skip
        for i, row in enumerate(self.rows):
            table.add_row(*(row[c] for c in columns), style="bold" if i in self.bold else None)
        return table


def _lines(text: str, longest: int = LONGEST_CELL) -> str:
    """The lines of a cell, each `printable` and at most ``longest`` cells wide."""
    return "\n".join(
        abridged(name_line(line, LONGEST_CELL), longest, cell_len) for line in text.split("\n")
    )


def _parts(widths: Sequence[int], width: int) -> list[list[int]]:
    """Columns by part, from left to right; each part begins with the first column."""
    parts, used = [[0]], EDGE + widths[0]
    for column, wide in enumerate(widths[1:], 1):
        if used + wide > width and len(parts[-1]) > 1:
            parts.append([0])
            used = EDGE + widths[0]
        parts[-1].append(column)
        used += wide
    return parts


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
