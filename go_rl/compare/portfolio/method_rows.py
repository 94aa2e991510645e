"""The rows of the table of methods, and their cells as text: one row a plan."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields
from html import escape
from math import inf, isfinite

from go_rl.core import Objective, Plan
from go_rl.core.evaluation import finite
from go_rl.core.unit_text import NOTHING, Unit, number_text, percent, unit_for

HEURISTIC = "greedy"
"""The compiler heuristic of the ring and of max-load."""
REFERENCES = {"one-device": "one device", "default": "default", HEURISTIC: "heuristic"}
"""The methods of reference plans, those that count first, and their heads: the best single device,
the framework's default or the compiler heuristic."""


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
    return next((name for name in REFERENCES if name in usable), "")


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


def headings(unit: Unit, objective: str, reference: str = "") -> tuple[str, ...]:
    """Return the printed column heads for an objective; ``reference`` names the reference plan."""
    traits = Objective(objective).traits
    usual = "default" if traits.is_replayed else HEURISTIC
    rival = REFERENCES[reference or usual]
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


def table_unit(table: Sequence[Row]) -> Unit:
    """Return the unit that suits the smallest time in the table."""
    return unit_for(min((r.value for r in table if r.value), default=0.0))


def html_table(table: Sequence[Row], best: Plan, title: str) -> str:
    """Return the rows as an HTML table; the row of the best plan is bold."""
    unit = table_unit(table)
    heads = headings(unit, best.objective, reference_name(table))
    lines = [_html_row("th", heads)]
    for row in table:
        is_best = row.method == best.optimizer
        lines.append(_html_row("td", cells(row, unit, best.objective), is_best))
    return f"<table><caption>{escape(title)}</caption>{''.join(lines)}</table>"


def _html_row(tag: str, texts: Sequence[str], is_bold: bool = False) -> str:
    style = ' style="font-weight: bold"' if is_bold else ""
    return f"<tr{style}>{''.join(f'<{tag}>{escape(text)}</{tag}>' for text in texts)}</tr>"
