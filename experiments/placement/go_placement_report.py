"""The page of `go_placement.py`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from experiments.page_text import cell, grid_table
from experiments.placement.go_rows import best_after, devices, known_rows
from experiments.rows import grouped
from experiments.statistics import geometric_mean, mean_cell, with_deviation

MINE = ("one", "one, nodes", "zero-shot", "fine-tuned")
"""Our own methods."""
REFERENCES = ("one", "one, nodes")
"""References for few samples: our form learning from scratch, and GO's own form."""
NOT_REPRODUCED = (
    "*hdp* is not reproduced: its published settings do not come near the expert's step time on "
    "our simulator (`hdp_reproduction`), so its column, of earlier settings than those that ship, "
    "is no measure of the paper's method, and no ratio to it is given."
)
FEW = (10, 20, 50, 100)
"""Samples after which they are compared."""


@dataclass(frozen=True)
class Run:
    """One search."""

    row: str
    method: str
    seed: int
    samples: int
    milliseconds: float | None
    """Step time of the best placement; None: none fits."""
    seconds: float
    """Time of the search, compilation left out."""
    bound_ms: float
    curve: list[list[float]]
    """[samples, seconds, ms] at every improvement."""


def page(runs: list[Run], methods: tuple[str, ...], samples: int) -> str:
    """Return the page on all runs of this many samples; ``methods`` gives the order of columns."""
    table = Table([r for r in runs if r.samples == samples], methods)
    hours = sum(r.seconds for r in table.runs) / 3600
    columns = {
        "devices": devices,
        **{
            "hdp, not reproduced" if m == "hdp" else m: lambda row, m=m: table.cell(row, m)
            for m in table.methods
        },
        "bound": lambda row: f"{max(r.bound_ms for r in table.runs if r.row == row):.1f}",
    }
    others = [method for method in table.methods if method != "hdp"]
    against: dict[str, Callable[..., str]] = {
        f"against {m}": lambda mine, m=m: cell(table.ratio(mine, m)) for m in others
    }
    against["rows"] = lambda mine: str(sum(bool(table.of(row, mine)) for row in table.rows))
    costs = {"hdp": "hdp", "one": "one"}
    searched = [row for row in table.rows if all(table.of(row, method) for method in costs)]
    parts = [
        "# Device placement on GO's six families",
        f"Milliseconds a step, task placement, {samples} samples, P100-class devices by the "
        "analytical cost model, one simulator for all; mean and standard deviation of several "
        f"seeds ({table.times_run()}), one otherwise. Search {hours:.2f} hours on two shared "
        "cores. Zero-shot and fine-tuned start from weights that were trained without the row's "
        "family.",
        grid_table("row", table.rows, columns, _told),
        "## Step time against others, geometric means",
        grid_table("", [m for m in MINE if m in table.methods], against, _told),
        *(part for one in REFERENCES for part in _few_samples(table, one, samples)),
        "## Search cost",
        "Seconds of search.",
        grid_table(
            "row", searched, costs,
            lambda row, m: mean_cell([r.seconds for r in table.of(row, m)], 1),
        ),
        NOT_REPRODUCED,
    ]  # fmt: skip
    return "\n\n".join(part.rstrip() for part in parts) + "\n"


def _told(name: str, column: Callable[[str], str]) -> str:
    return column(name)


class Table:
    """Runs by row and method."""

    def __init__(self, runs: list[Run], methods: tuple[str, ...]) -> None:
        self.runs, self.rows = runs, known_rows(runs)
        self.methods = [m for m in methods if any(r.method == m for r in runs)]
        self._found = grouped(runs, lambda run: (run.row, run.method))

    def of(self, row: str, method: str) -> list[Run]:
        """Runs of a method on a row."""
        return self._found.get((row, method), [])

    def steps(self, row: str, method: str) -> list[float]:
        """Milliseconds of each seed; NaN: no plan fits."""
        return [run.milliseconds or np.nan for run in self.of(row, method)]

    def mean(self, row: str, method: str) -> float:
        """Mean of `steps`; NaN: not run."""
        return float(np.mean(self.steps(row, method) or [np.nan]))

    def cell(self, row: str, method: str) -> str:
        """Mean and deviation as text."""
        return with_deviation(self.steps(row, method))

    def ratio(self, mine: str, other: str) -> float:
        """Geometric mean over rows of one method's mean over another's."""
        return geometric_mean(self.mean(row, mine) / self.mean(row, other) for row in self.rows)

    def times_run(self) -> str:
        """How often each method that draws was run on a row."""
        found = []
        for method in self.methods:
            counts = [len(of) for row in self.rows if (of := self.of(row, method))]
            if max(counts) > 1:
                range_ = dict.fromkeys((min(counts), max(counts)))
                found.append(f"{method} {' to '.join(map(str, range_))}")
        return ", ".join(found)


def _few_samples(table: Table, reference: str, samples: int) -> list[str]:
    """Best plan of each learner after few samples, against one of them after all samples."""
    rows = [row for row in table.rows if table.of(row, reference)]
    if not rows:
        return []

    def ratio(count: int, mine: str) -> str:
        return cell(geometric_mean(
            best_after(run.curve, count) / table.mean(row, reference)
            for row in rows
            for run in table.of(row, mine)
        ))  # fmt: skip

    counts = {str(n): n for n in (*(n for n in FEW if n < samples), samples)}
    return [
        f"## Few samples, against *{reference}*",
        f"Step time of the best plan after so many samples, against *{reference}* after {samples}: "
        f"geometric means over {len(rows)} rows.",
        grid_table("samples", counts, MINE, ratio),
    ]
