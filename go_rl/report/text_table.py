"""Tables for a terminal; wide ones are split, never cut."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from rich.cells import cell_len
from rich.table import Table

EDGE, BETWEEN = 1, 3
"""Characters of a table's border, and of the space and line beside each column."""
PROSE = 24
"""Minimum width of a column of prose, which wraps."""


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
        beside the first column again. Where even one is too wide its cells are wrapped."""
        for number, columns in enumerate(self._balanced(width)):
            yield self._table(columns, "" if number else self.title)

    def _balanced(self, width: int) -> list[list[int]]:
        """As few parts as possible, of about equal width."""
        parts = self._parts(width)
        while len(narrower := self._parts(width := width - 1)) == len(parts) > 1:
            parts = narrower
        return parts

    def _parts(self, width: int) -> list[list[int]]:
        key, parts = self._width(0), [[0]]
        used = EDGE + key
        for column in range(1, len(self.heads)):
            wide = self._width(column)
            if used + wide > width and len(parts[-1]) > 1:
                parts.append([0])
                used = EDGE + key
            parts[-1].append(column)
            used += wide
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
