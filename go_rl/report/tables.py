"""The table of methods: one row a plan, for a terminal, as Markdown, CSV and JSON."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, fields
from math import inf, isfinite
from typing import Any

from go_rl.core import OPTIMAL_GAP, Objective, Plan
from go_rl.core.evaluation import finite
from go_rl.report.file_tables import NOTHING, csv_table, markdown_table, number_text
from go_rl.report.text_table import TextTable

HEURISTIC = "greedy"
"""The compiler heuristic of the ring and of max-load."""
BASELINES = {"one-device": "one device", "default": "default", HEURISTIC: "heuristic"}
"""The methods of reference plans, those that count first, and their heads: the best single device,
the framework's default or the compiler heuristic."""
WIDEST_GAP = 10.0
"""Gap to the proven bound, as a ratio, beyond which the bound says nothing of use."""
NO_BOUND = "no useful bound"

Unit = tuple[float, str]
"""Units in a second, and the unit's name."""


UNITS: tuple[Unit, ...] = ((1.0, "s"), (1e3, "ms"), (1e6, "µs"), (1e9, "ns"))

BYTE_UNITS = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


@dataclass(frozen=True)
class Row:
    """One method's result; None where there is no finite number."""

    method: str
    """Name of the optimizer."""
    value: float | None
    """The objective, seconds."""
    throughput: float | None
    """Iterations a second."""
    improvement: float | None
    """Throughput over that of the reference plan (1.0: as good); see `reference_name`."""
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
    values = {plan.optimizer: plan.value for plan in reversed(plans)}
    name = _reference({name for name in values if isfinite(values[name])})
    reference = values.get(name, inf)
    return [_row(plan, reference, bound) for plan in plans]


def _reference(usable: Collection[str]) -> str:
    return next((name for name in BASELINES if name in usable), "")


def reference_name(table: Sequence[Row]) -> str:
    """Return the method of the row that all others are compared with; empty: there is none."""
    return _reference([row.method for row in table if row.improvement is not None])


def _row(plan: Plan, reference: float, bound: float) -> Row:
    usable = plan.evaluation.status.ok and isfinite(plan.value)
    value = plan.value if usable else inf
    improvement = reference / value if isfinite(reference) and value > 0 else None
    return Row(
        method=plan.optimizer,
        value=finite(value),
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


def seconds_text(seconds: float) -> str:
    """Return a time as text, such as ``1.25 ms``."""
    scale, unit = unit_for(seconds)
    return f"{seconds * scale:.4g} {unit}"


def byte_unit(size: float) -> tuple[float, str]:
    """Return the bytes of the unit in which a size reads as 1 to 1,000, and its name."""
    return next(((scale, name) for scale, name in BYTE_UNITS if size >= scale), (1.0, "B"))


def bytes_text(size: float) -> str:
    """Return bytes as text, such as ``80 GB``."""
    scale, name = byte_unit(size)
    return f"{size / scale:,.4g} {name}"


def headings(unit: Unit, objective: str, reference: str = "") -> tuple[str, ...]:
    """Return the printed column heads for an objective; ``reference`` names the reference plan."""
    traits = Objective(objective).traits
    usual = "default" if traits.is_replayed else HEURISTIC
    rival = BASELINES[reference or usual]
    chips = ("effective chips",) if traits.is_pipeline else ()
    return ("method", f"{traits.value_name} [{unit[1]}]", "iterations/s", f"vs {rival}",
            "gap to bound", *chips, "samples", "seconds", "status")  # fmt: skip


def cells(row: Row, unit: Unit, objective: str) -> tuple[str, ...]:
    """Return the printed cells of a row."""
    told = Objective(objective).traits.is_pipeline
    chips = (number_text(row.effective_chips, "{:.1f}"),) if told else ()
    return (
        row.method,
        number_text(None if row.value is None else row.value * unit[0], "{:.4g}"),
        number_text(row.throughput, "{:,.0f}" if (row.throughput or 0) >= 1000 else "{:.4g}"),
        number_text(row.improvement, "{:.2f}×"),
        NOTHING if row.gap is None else percent(row.gap),
        *chips,
        f"{row.samples:,}",
        f"{row.wall_seconds:.2f}",
        row.status,
    )


def percent(ratio: float) -> str:
    """Return a gap as text; small ones keep two digits, because 0.0 would claim an optimum."""
    if ratio > WIDEST_GAP:
        return NO_BOUND
    proved = ratio <= OPTIMAL_GAP
    return f"{100 * ratio:.1f} %" if ratio >= 1e-3 or proved else f"{100 * ratio:.2g} %"


def table_unit(table: Sequence[Row]) -> Unit:
    """Return the unit that suits the smallest time in the table."""
    return unit_for(min((r.value for r in table if r.value), default=0.0))


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
