"""Rows and page of `learned_rewards`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from experiments.page_text import grid_table, shown
from experiments.rows import grouped
from experiments.statistics import geometric_mean

TaskName = Literal["fusion", "partition"]
DEFAULT = "default"
TITLES: dict[TaskName, str] = {
    "fusion": "Fusion on one core: the sum of all kernels, milliseconds",
    "partition": "Partition on four cores: the bottleneck of the pipeline, milliseconds",
}


Key = tuple[TaskName, str, str, int]
"""Task, model, method and seed."""


@dataclass(frozen=True)
class Row:
    """A plan by one method, as it was measured."""

    task: TaskName
    model: str
    nodes: int
    method: str
    seed: int
    minutes: float
    """That the search might take; 0: there was none."""
    samples: int
    """Plans priced."""
    spent_seconds: float
    """That the search took."""
    parts: int
    """Kernels of the plan, or chips in use."""
    priced_ms: float
    """An iteration by the method's own prices."""
    measured_ms: float
    """The same as measured; NaN: there is no plan, or something cannot be timed."""

    @property
    def key(self) -> Key:
        """Key of a row."""
        return self.task, self.model, self.method, self.seed


def page(rows: Sequence[Row]) -> str:
    """Return the page: for each decision the measurements, and the course of the searches."""
    minutes = {row.task: row.minutes for row in rows if row.minutes}
    said = " and ".join(f"{m:g} min a search for a {task}" for task, m in minutes.items())
    text = (
        "# Policies that learn from predicted prices, judged by measuring\n\nPolicies fine-tuned "
        f"on each model under analytical, learned and measured prices, {said or 'no searches'}. "
        "*default*: XLA's fusion of all that may fuse, or the compiler's heuristic partition. "
        "Ratios are geometric means over models of the measured time over that of the default; "
        "below 1 is faster.\n"
    )
    for task, title in TITLES.items():
        chosen = [row for row in rows if row.task == task]
        if chosen:
            text += f"\n## {title}\n\n{_measured(chosen)}{_searches(chosen)}"
    return text


def methods(rows: Sequence[Row]) -> list[str]:
    """Return the methods in the order of the rows."""
    return list(dict.fromkeys(row.method for row in rows))


def cell(rows: Sequence[Row], model: str, method: str) -> float:
    """Return the geometric mean over seeds of the measured milliseconds; NaN where one has none."""
    found = [row.measured_ms for row in rows if (row.model, row.method) == (model, method)]
    return float(np.exp(np.mean(np.log(found)))) if found else float("nan")


def ratio(rows: Sequence[Row], method: str) -> float:
    """Return the geometric mean over models of a method's time over the default's; models where
    one of the two has none are left out."""
    return geometric_mean(cell(rows, m, method) / cell(rows, m, DEFAULT) for m in _models(rows))


def _models(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(row.model for row in rows))


def _measured(rows: Sequence[Row]) -> str:
    nodes = {row.model: row.nodes for row in rows}
    columns = {"nodes": lambda model: str(nodes[model]) if model else ""}
    for name in methods(rows):
        columns[name] = lambda model, name=name: shown(
            cell(rows, model, name) if model else ratio(rows, name), ".4g"
        )
    models = {**{model: model for model in _models(rows)}, "*ratio to the default*": ""}
    return grid_table("model", models, columns).replace("|  |", "| |")


def _searches(rows: Sequence[Row]) -> str:
    """Number of plans that were priced, and the error of their prices against measurements."""
    searched = grouped((row for row in rows if row.minutes), lambda row: row.method)
    if not searched:
        return ""
    columns: dict[str, Callable[[list[Row]], str]] = {
        "plans priced in a search": lambda own: f"{np.median([row.samples for row in own]):.0f}",
        "parts of the plan kept": lambda own: f"{np.median([row.parts for row in own]):.0f}",
        "price over measured time": lambda own: shown(
            geometric_mean(row.priced_ms / row.measured_ms for row in own), ".3g"
        ),
    }
    table = grid_table("prices", searched, columns)
    return f"\n{table}\nPlans and parts are medians, the last column a geometric mean.\n"
