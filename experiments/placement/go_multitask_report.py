"""The page and the figure of `go_multitask`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from matplotlib.figure import Figure

from experiments.page_text import NOTHING, grid_table
from experiments.placement.go_rows import devices, known_rows
from experiments.rows import grouped
from experiments.statistics import geometric_mean, with_deviation
from go_rl.core import DECISIONS
from go_rl.report.figures import GREY, LINE_COLOURS, new_figure

COLUMNS = (
    "default", "compiler", "composed", "one", "fine-tuned", "auto", "separate", "sequential",
    "sequential, tuned",
)  # fmt: skip
"""Methods in the order of the columns; others come behind."""
JOINT = DECISIONS
Tasks = tuple[str, ...]
SETS: tuple[tuple[str, ...], ...] = tuple(
    chosen for count in (1, 2, 3) for chosen in combinations(DECISIONS, count)
)
"""Each decision alone, each pair, all three."""
FUSED = ("compiler", ("fusion",))
"""Method and decisions of the default plan with greedy fusion."""
PUBLISHED = (0.33, 0.60)
"""Speed-up over TensorFlow's default."""


@dataclass(frozen=True)
class Run:
    """One search."""

    row: str
    method: str
    tasks: str
    """Joined by +."""
    seed: int
    samples: int
    milliseconds: float | None
    """Step time of the best plan; None: none fits."""
    seconds: float
    """Time of the search, compilation left out."""
    curve: list[list[float]]
    """[samples, seconds, ms] at every improvement."""


class Table:
    """Mean step times of runs with equal samples."""

    def __init__(self, runs: Sequence[Run], samples: int) -> None:
        self.runs = [run for run in runs if run.samples == samples]
        self.rows = known_rows(self.runs)
        self._found = grouped(self.runs, lambda run: (run.row, run.method, run.tasks))

    def has(self, method: str, tasks: Tasks = JOINT) -> bool:
        """Whether any row was run so."""
        return any(self.of(row, method, tasks) for row in self.rows)

    def of(self, row: str, method: str, tasks: Tasks = JOINT) -> list[Run]:
        """Runs of a row."""
        return self._found.get((row, method, "+".join(tasks)), [])

    def steps(self, row: str, method: str, tasks: Tasks = JOINT) -> list[float]:
        """Milliseconds of each run; NaN: no plan fits."""
        found = (run.milliseconds for run in self.of(row, method, tasks))
        return [np.nan if each is None else each for each in found]

    def mean(self, row: str, method: str, tasks: Tasks = JOINT) -> float:
        """Milliseconds; nan: not run, or a run found no plan that fits."""
        return float(np.mean(self.steps(row, method, tasks) or [np.nan]))

    def seconds(self, row: str, method: str) -> float:
        """Seconds of a search on all tasks."""
        return float(np.mean([run.seconds for run in self.of(row, method)] or [np.nan]))

    def cell(self, row: str, method: str, tasks: Tasks = JOINT) -> str:
        """Mean and deviation as text."""
        return with_deviation(self.steps(row, method, tasks))

    def ratio(self, over: Callable[[str], float], under: Callable[[str], float]) -> str:
        """Geometric mean over the rows that have both, as text."""
        usable = [r for row in self.rows if np.isfinite(r := over(row) / under(row))]
        return f"{geometric_mean(usable):.3f} ({len(usable)})" if usable else NOTHING


def page(runs: Sequence[Run], samples: int, seeds: int) -> str:
    """Return the tables of the runs of so many samples."""
    table = Table(runs, samples)
    hours = sum(run.seconds for run in table.runs) / 3600
    known = dict.fromkeys([*COLUMNS, *(run.method for run in runs)])
    methods = [method for method in known if table.has(method)]
    parted = [m for m in methods if any(table.has(m, tasks) for tasks in SETS[:-1])]
    parts = [
        "# Placement, schedule and fusion together",
        f"Milliseconds a step, {samples} samples, P100-class devices by the analytical cost model, "
        f"one simulator for all; {seeds} seed(s), mean and standard deviation. Search {hours:.2f} "
        "hours on two shared cores. The shipped weights, from which *fine-tuned* starts, learned "
        "from searches on graphs of all these families. Default: everything on one device if it "
        "fits, topological order, nothing fused; on one device with one stream a schedule by "
        "itself changes memory only.",
        *_joint(table, methods),
        *(part for method in parted for part in _sets(table, method)),
        *(_worth(table, parted) if parted else ()),
        *_shared(table),
    ]
    return "\n\n".join(part.rstrip() for part in parts) + "\n"


def _joint(table: Table, methods: list[str]) -> list[str]:
    columns = {"devices": devices}
    columns |= {method: lambda row, m=method: table.cell(row, m) for method in methods}
    others = [method for method in methods if method != "default"]
    least, most = (f"{100 * x:.0f}" for x in PUBLISHED)
    parts = [
        "## All three tasks",
        grid_table("row", table.rows, columns, lambda row, told: told(row)),
        "Speed-up over the default, default / joint - 1, and in brackets the time saved, 1 - "
        f"joint / default; per cent. Published: {least} to {most} % over TensorFlow's default.",
        _gains(table, others, lambda row: table.mean(row, "default")),
    ]
    if table.has(*FUSED):
        parts += [
            "The same over the default with greedy fusion, as compilers have it.",
            _gains(table, others, lambda row: table.mean(row, *FUSED)),
        ]
    return parts


def _gains(table: Table, methods: list[str], baseline: Callable[[str], float]) -> str:
    rows = {**{row: [row] for row in table.rows}, "geometric mean": table.rows}
    return grid_table(
        "row", rows, methods,
        lambda some, m: _gain(geometric_mean(baseline(row) / table.mean(row, m) for row in some)),
    )  # fmt: skip


def _gain(speedup: float) -> str:
    if not np.isfinite(speedup):
        return NOTHING
    return f"{100 * (speedup - 1):.1f} ({100 * (1 - 1 / speedup):.1f})"


def _name(tasks: Tasks) -> str:
    return " + ".join(tasks) if len(tasks) < len(DECISIONS) else "all three"


def _sets(table: Table, method: str) -> list[str]:
    shown = [row for row in table.rows if any(table.of(row, method, tasks) for tasks in SETS)]
    columns = {"default": lambda row: table.cell(row, "default")}
    for tasks in SETS:
        columns[_name(tasks)] = lambda row, t=tasks: table.cell(row, method, t)
    grid = grid_table("row", shown, columns, lambda row, told: told(row))
    return [f"## Sets of tasks: {method}", grid]


def _worth(table: Table, methods: list[str]) -> list[str]:
    """Gain of each decision alone, and loss when it is left out of all three."""

    def ratio(over: Tasks, under: Tasks, method: str) -> str:
        def mean(row: str, tasks: Tasks) -> float:
            return table.mean(row, method, tasks) if tasks else table.mean(row, "default")

        return table.ratio(lambda row: mean(row, over), lambda row: mean(row, under))

    columns: dict[str, tuple[Tasks, Tasks]] = {f"{t} alone": ((), (t,)) for t in DECISIONS}
    for task in DECISIONS:
        columns[f"{task} left out"] = (tuple(x for x in DECISIONS if x != task), JOINT)
    return [
        "## What each task is worth",
        "Geometric means, in brackets the rows. Alone: default / that task alone. Left out: the "
        "other two tasks / all three; 1.05 means that without the task a step takes 5 % longer.",
        grid_table(
            "method", methods, columns, lambda method, pair: ratio(pair[0], pair[1], method)
        ),
    ]


PAIRS = (
    ("separate", "one", "a policy for each task / one policy for all"),
    ("sequential", "one", "one task after the other / jointly, from untrained weights"),
    ("sequential, tuned", "fine-tuned", "the same from the shipped weights"),
    ("composed", "one", "best stack of passes / jointly, from untrained weights"),
    ("composed", "fine-tuned", "the same against the shipped weights"),
)


def _shared(table: Table) -> list[str]:
    """Ways to learn against each other at equal samples."""
    shown = {words: (a, b) for a, b, words in PAIRS if table.has(a) and table.has(b)}
    if not shown:
        return []
    columns: dict[str, Callable[[str, str], str]] = {
        "ratio": lambda a, b: table.ratio(
            lambda row: table.mean(row, a), lambda row: table.mean(row, b)
        ),
        "rows that the second wins": lambda a, b: str(
            sum(table.mean(row, a) > table.mean(row, b) for row in table.rows)
        ),
        "search seconds, ratio": lambda a, b: table.ratio(
            lambda row: table.seconds(row, a), lambda row: table.seconds(row, b)
        ),
    }
    return [
        "## Jointly or not, shared or not",
        "Step times at equal samples, geometric mean and in brackets the rows; above 1 the second "
        "is better.",
        grid_table("comparison", shown, columns, lambda pair, told: told(*pair)),
    ]


def picture(runs: Sequence[Run], samples: int) -> Figure:
    """Return the figure: speed-up over the default of each row, by method."""
    table = Table(runs, samples)
    methods = [m for m in ("compiler", "composed", "one", "fine-tuned", "auto") if table.has(m)]
    figure = new_figure(11.0, 4.2)
    axes = figure.subplots()
    axes.axhspan(*(100 * x for x in PUBLISHED), color="#eeeeee", label="published, 33 to 60 %")
    for i, method in enumerate(methods):
        gains = [
            100 * (table.mean(row, "default") / table.mean(row, method) - 1) for row in table.rows
        ]
        at = np.arange(len(gains)) + (i - (len(methods) - 1) / 2) * 0.16
        axes.bar(at, gains, 0.15, color=LINE_COLOURS[i], label=method)
    axes.axhline(0.0, color=GREY, linewidth=0.8)
    labels = [f"{row}\n{devices(row)} devices" for row in table.rows]
    axes.set_xticks(range(len(labels)), labels, rotation=30, ha="right", fontsize=8)
    axes.set_ylabel("speed-up over the default [%]")
    axes.legend(frameon=False, fontsize=9, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure
