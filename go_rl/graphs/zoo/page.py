"""The table of the zoo in its documentation: ``python -m go_rl.graphs.zoo.page docs/zoo.md``."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from go_rl.core.errors import ZooError
from go_rl.core.files.whole_file import write_text
from go_rl.graphs.zoo.index import SPLITS, ZooEntry, zoo_entry, zoo_names

BEGIN = "<!-- table: python -m go_rl.graphs.zoo.page docs/zoo.md -->"
END = "<!-- end of table -->"


def table(entries: Iterable[ZooEntry]) -> str:
    """Return the Markdown table of all graphs, by split, then family, then size."""
    ordered = sorted(entries, key=lambda e: (SPLITS.index(e.split), e.family, e.nodes, e.name))
    rows = [
        f"| {e.name} | {e.family} | {e.split} | {e.nodes:,} | {e.edges:,} | {e.flops / 1e9:,.2f} "
        f"| {e.weight_bytes / 1e6:,.1f} |"
        for e in ordered
    ]
    head = "| graph | family | split | nodes | edges | GFLOP | weights, MB |"
    return "\n".join([head, "|---|---|---|--:|--:|--:|--:|", *rows])


def with_table(page: str, entries: Iterable[ZooEntry]) -> str:
    """Return the page with the table between its two marks replaced.

    Raises:
        ZooError: the page lacks a mark.
    """
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ZooError(f"the page must hold the lines {BEGIN!r} and {END!r}")
    return f"{before}{BEGIN}\n{table(entries)}\n{END}{after}"


def main(argv: list[str]) -> int:
    """Rewrite the page; returns the exit code."""
    path = Path(argv[0])
    entries = [zoo_entry(name) for name in zoo_names(training=True)]
    write_text(path, with_table(path.read_text(encoding="utf-8"), entries))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
