"""The table of what was run: ``counted_suites.md`` and ``.csv``."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from runner.progress_file import ProgressFile
from runner.suite import Failure, Suite

from experiments.rows import csv_text

from .suites import NAMES, find_suite


@dataclass(frozen=True)
class Row:
    """How far a suite came."""

    suite: str
    proves: str
    unit: str
    asked: int
    """Units at full count."""
    done: int
    """Units tried."""
    lost: int
    """Trials that failed."""
    cpu_seconds: float
    commits: str
    """Commits that the trials ran on, with units where there are several; + is a changed tree."""


def write_table(folder: Path, results: Path) -> tuple[Path, Path]:
    """Write the table of the suites recorded in a folder; return the paths written.

    Raises:
        SystemExit: the folder records no trial: a table that is there stays.
    """
    rows, failures = [], []
    for suite in map(find_suite, NAMES):
        row, failed = row_of(suite, folder)
        rows.append(row)
        failures += failed
    if not any(row.done for row in rows):
        raise SystemExit(f"{folder} records no trial: run make test-counted first")
    markdown, table = results / "counted_suites.md", results / "counted_suites.csv"
    markdown.write_text(page(rows, failures))
    table.write_text(csv_text(Row, rows))
    return markdown, table


def row_of(suite: Suite, folder: Path) -> tuple[Row, list[Failure]]:
    """The row of one suite, and its failures."""
    record = ProgressFile(folder, suite).read()
    ran = Counter(record.commit.values())
    named = [f"{name} ({n * suite.each:,})" for name, n in ran.most_common()]
    return Row(
        suite=suite.name,
        proves=suite.proves,
        unit=suite.unit,
        asked=suite.count * suite.each,
        done=len(record.commit) * suite.each,
        lost=len(record.failures),
        cpu_seconds=record.cpu_seconds,
        commits=", ".join(named if len(ran) > 1 else ran),
    ), list(record.failures.values())


def page(rows: list[Row], failures: list[Failure]) -> str:
    """The Markdown page."""
    complete = sum(row.done == row.asked for row in rows)
    minutes = sum(row.cpu_seconds for row in rows) / 60
    lines = [
        "# Counted suites",
        "",
        f"{complete} of {len(rows)} suites at full count, {len(failures)} trials lost, "
        f"{minutes:.0f} CPU minutes. Made by `make test-counted`; a trial is repeated by "
        "`python -m tests.counted repeat SUITE INDEX`.",
        "",
        "| suite | what holds | asked | done | lost | CPU s | commit |",
        "|---|---|--:|--:|--:|--:|---|",
        *(
            f"| {row.suite} | {row.proves} | {row.asked:,} {row.unit} | {row.done:,} | {row.lost} "
            f"| {row.cpu_seconds:.0f} | {row.commits} |"
            for row in rows
        ),
    ]
    if failures:
        lines += ["", "## Lost", ""]
        lines += [f"- `{failure.repeat}`: {failure.what}" for failure in failures]
    return "\n".join(lines) + "\n"
