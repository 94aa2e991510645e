"""The table of methods: one row a plan, for a terminal, as Markdown, CSV and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from math import inf, isfinite
from typing import Any

from go_rl.core import OPTIMAL_GAP, Objective, Plan
from go_rl.core.evaluation import finite
from go_rl.report.file_tables import csv_table, markdown_table
from go_rl.report.text_table import TextTable

HEURISTIC = "greedy"
"""The compiler heuristic of the ring and of max-load."""
BASELINES = (HEURISTIC, "default")
"""The methods of reference plans: the heuristic, or the framework's default."""

Unit = tuple[float, str]
"""Units in a second, and the unit's name."""

VALUE_NAMES = {
    "ring": "T_max",
    "max-load": "max load",
    "latency": "makespan",
    "makespan": "makespan",
}
"""Name of the objective's value."""

UNITS: tuple[Unit, ...] = ((1.0, "s"), (1e3, "ms"), (1e6, "µs"), (1e9, "ns"))


@dataclass(frozen=True)
class Row:
    """One method's result; None where there is no finite number."""

    method: str
    """Name of the optimizer."""
    seconds_per_step: float | None
    """The objective, seconds."""
    throughput: float | None
    """Iterations a second."""
    improvement: float | None
    """Throughput over that of the compiler heuristic (1.0: as good)."""
    gap: float | None
    """Distance of the objective from the proven bound, as a ratio (0.1: 10 %)."""
    effective_chips: float | None
    """Exponential of the entropy of the chips' shares of the work; rings only."""
    samples: int
    """Complete plans priced."""
    wall_seconds: float
    """Time the search took, seconds."""
    status: str
    """`Status` of the result."""


COLUMNS = tuple(f.name for f in fields(Row))


def rows(plans: Sequence[Plan], bound: float) -> list[Row]:
    """Return a row a plan, in the order given; ``bound`` is the best proven bound of them all."""
    named = [plan for plan in plans if plan.optimizer in BASELINES]
    heuristic = named[0].value if named else inf
    return [_row(plan, heuristic, bound) for plan in plans]


def _row(plan: Plan, heuristic: float, bound: float) -> Row:
    usable = plan.evaluation.status.ok and isfinite(plan.value)
    value = plan.value if usable else inf
    improvement = heuristic / value if isfinite(heuristic) and value > 0 else None
    return Row(
        method=plan.optimizer,
        seconds_per_step=finite(value),
        throughput=finite(1 / value if value > 0 else inf) if usable else None,
        improvement=finite(improvement) if usable else None,
        gap=finite(max(0.0, value / bound - 1)) if bound > 0 else None,
        effective_chips=finite(plan.effective_chips),
        samples=int(plan.samples),
        wall_seconds=float(plan.wall_seconds),
        status=str(plan.evaluation.status),
    )


def json_rows(table: Sequence[Row]) -> list[dict[str, Any]]:
    """Return the rows as JSON objects; every number is finite or null."""
    return [asdict(row) for row in table]


def csv_text(table: Sequence[Row]) -> str:
    """Return the rows as CSV in SI units; an empty field stands for no number."""
    return csv_table(COLUMNS, (asdict(row).values() for row in table))


def unit_for(seconds: float) -> Unit:
    """Return the unit in which a time reads as 1 to 1,000."""
    for scale, name in UNITS:
        if seconds * scale >= 1.0:
            return scale, name
    return UNITS[1] if seconds == 0 else UNITS[-1]


def headings(unit: Unit, objective: str) -> tuple[str, ...]:
    """Return the printed column heads for an objective."""
    rival = "default" if objective == Objective.MAKESPAN else "heuristic"
    chips = ("effective chips",) if objective == Objective.RING else ()
    return ("method", f"{VALUE_NAMES[objective]} [{unit[1]}]", "iterations/s", f"vs {rival}",
            "gap to bound", *chips, "samples", "seconds", "status")  # fmt: skip


def cells(row: Row, unit: Unit, objective: str) -> tuple[str, ...]:
    """Return the printed cells of a row."""
    chips = (_number(row.effective_chips, 1.0, "{:.1f}"),) if objective == Objective.RING else ()
    return (
        row.method,
        _number(row.seconds_per_step, unit[0], "{:.4g}"),
        _throughput(row.throughput),
        _number(row.improvement, 1.0, "{:.2f}×"),
        "–" if row.gap is None else percent(row.gap),
        *chips,
        f"{row.samples:,}",
        f"{row.wall_seconds:.2f}",
        row.status,
    )


def percent(ratio: float) -> str:
    """Return a gap as text; small ones keep two digits, because 0.0 would claim an optimum."""
    proved = ratio <= OPTIMAL_GAP
    return f"{100 * ratio:.1f} %" if ratio >= 1e-3 or proved else f"{100 * ratio:.2g} %"


def _number(value: float | None, scale: float, form: str) -> str:
    return "–" if value is None else form.format(value * scale)


def _throughput(steps: float | None) -> str:
    if steps is None:
        return "–"
    return f"{steps:,.0f}" if steps >= 1000 else f"{steps:.4g}"


def table_unit(table: Sequence[Row]) -> Unit:
    """Return the unit that suits the smallest time in the table."""
    return unit_for(min((r.seconds_per_step for r in table if r.seconds_per_step), default=0.0))


def markdown(table: Sequence[Row], objective: str) -> str:
    """Return the rows as a Markdown table."""
    unit = table_unit(table)
    rows = (cells(row, unit, objective) for row in table)
    return markdown_table(headings(unit, objective), rows, words=("status",))


def text_table(table: Sequence[Row], best: Plan, title: str) -> TextTable:
    """Return the rows for a terminal; the row of the best plan is highlighted."""
    unit = table_unit(table)
    return TextTable(
        title=title,
        heads=headings(unit, best.objective),
        rows=[cells(row, unit, best.objective) for row in table],
        words=("status",),
        bold=frozenset(i for i, row in enumerate(table) if row.method == best.optimizer),
    )
