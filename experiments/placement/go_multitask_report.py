"""The page and the figure of `go_multitask`."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from matplotlib.figure import Figure

from experiments.page_text import NOTHING, markdown_table
from experiments.placement.go_rows import ROWS
from go_rl.core import DECISIONS
from go_rl.report.figures import GREY, LINE_COLOURS, new_figure

COLUMNS = (
    "default", "compiler", "composed", "one", "fine-tuned", "auto", "separate", "sequential",
    "sequential, tuned",
)  # fmt: skip
"""Methods in the order of the columns; others come behind."""
JOINT = DECISIONS
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
        self.rows = [row for row in ROWS if any(run.row == row for run in self.runs)]
        self._found: dict[tuple[str, str, str], list[float]] = {}
        for run in self.runs:
            value = np.nan if run.milliseconds is None else run.milliseconds
            self._found.setdefault((run.row, run.method, run.tasks), []).append(value)

    def has(self, method: str, tasks: tuple[str, ...] = JOINT) -> bool:
        """Whether any row was run so."""
        return any((row, method, "+".join(tasks)) in self._found for row in self.rows)

    def mean(self, row: str, method: str, tasks: tuple[str, ...] = JOINT) -> float:
        """Milliseconds; nan: not run, or a run found no plan that fits."""
        return float(np.mean(self._found.get((row, method, "+".join(tasks)), [np.nan])))

    def cell(self, row: str, method: str, tasks: tuple[str, ...] = JOINT) -> str:
        """Mean and deviation as text."""
        mean = self.mean(row, method, tasks)
        spread = float(np.std(self._found.get((row, method, "+".join(tasks)), [np.nan])))
        shown = f"{mean:.2f} ± {spread:.2f}" if spread > 0 else f"{mean:.2f}"
        return NOTHING if np.isnan(mean) else shown

    def speedup(self, row: str, method: str, tasks: tuple[str, ...] = JOINT) -> float:
        """Default over this."""
        return self.mean(row, "default") / self.mean(row, method, tasks)

    def ratio(self, over: Callable[[str], float], under: Callable[[str], float]) -> str:
        """Geometric mean over the rows that have both, as text."""
        ratios = [over(row) / under(row) for row in self.rows]
        usable = [r for r in ratios if np.isfinite(r)]
        return f"{np.exp(np.mean(np.log(usable))):.3f} ({len(usable)})" if usable else NOTHING


def page(runs: Sequence[Run], samples: int, seeds: int) -> str:
    """Return the tables of the runs of so many samples."""
    table, out = Table(runs, samples), io.StringIO()
    hours = sum(run.seconds for run in table.runs) / 3600
    out.write(
        f"# Placement, schedule and fusion together\n\nMilliseconds a step, {samples} "
        "samples, P100-class devices by the analytical cost model, one simulator for all; "
        f"{seeds} seed(s), mean and standard deviation. Search {hours:.2f} hours on two "
        "shared cores. The shipped weights, from which *fine-tuned* starts, learned from searches "
        "on graphs of all these families. Default: everything on one device if it fits, "
        "topological order, nothing fused; on one device with one stream a schedule by itself "
        "changes memory only.\n\n"
    )
    methods = [m for m in _known(runs) if table.has(m)]
    _joint(out, table, methods)
    for method in methods:
        if any(table.has(method, tasks) for tasks in SETS[:-1]):
            _sets(out, table, method)
    _worth(out, table, methods)
    _shared(out, table)
    return out.getvalue()


def _known(runs: Sequence[Run]) -> list[str]:
    return list(dict.fromkeys([*COLUMNS, *(run.method for run in runs)]))


def _joint(out: io.StringIO, table: Table, methods: list[str]) -> None:
    lines = [
        [row, str(ROWS[row][1]), *(table.cell(row, method) for method in methods)]
        for row in table.rows
    ]
    out.write(f"## All three tasks\n\n{markdown_table(['row', 'devices', *methods], lines)}")
    others = [method for method in methods if method != "default"]
    least, most = (f"{100 * x:.0f}" for x in PUBLISHED)
    out.write(
        f"\nSpeed-up over the default, default / joint - 1, and in brackets the time saved, 1 - "
        f"joint / default; per cent. Published: {least} to {most} % over TensorFlow's default.\n\n"
    )
    _gains(out, table, others, lambda row: table.mean(row, "default"))
    if table.has(*FUSED):
        out.write("\nThe same over the default with greedy fusion, as compilers have it.\n\n")
        _gains(out, table, others, lambda row: table.mean(row, *FUSED))


def _gains(
    out: io.StringIO, table: Table, methods: list[str], baseline: Callable[[str], float]
) -> None:
    found = {
        method: np.array([baseline(row) / table.mean(row, method) for row in table.rows])
        for method in methods
    }
    lines = [[row, *(_gain(found[m][i]) for m in methods)] for i, row in enumerate(table.rows)]
    logs = [np.log(gains[np.isfinite(gains)]) for gains in found.values()]
    means = [_gain(float(np.exp(log.mean()))) if log.size else NOTHING for log in logs]
    out.write(markdown_table(["row", *methods], [*lines, ["geometric mean", *means]]))


def _gain(speedup: float) -> str:
    if not np.isfinite(speedup):
        return NOTHING
    return f"{100 * (speedup - 1):.1f} ({100 * (1 - 1 / speedup):.1f})"


def _name(tasks: tuple[str, ...]) -> str:
    return " + ".join(tasks) if len(tasks) < len(DECISIONS) else "all three"


def _sets(out: io.StringIO, table: Table, method: str) -> None:
    heads = ["row", "default", *(_name(tasks) for tasks in SETS)]
    cells = {row: [table.cell(row, method, tasks) for tasks in SETS] for row in table.rows}
    lines = [
        [row, table.cell(row, "default"), *found]
        for row, found in cells.items()
        if set(found) != {NOTHING}
    ]
    out.write(f"\n## Sets of tasks: {method}\n\n{markdown_table(heads, lines)}")


def _worth(out: io.StringIO, table: Table, methods: list[str]) -> None:
    """Gain of each decision alone, and loss when it is left out of all three."""
    shown = [m for m in methods if any(table.has(m, tasks) for tasks in SETS[:-1])]
    if not shown:
        return
    out.write(
        "\n## What each task is worth\n\nGeometric means, in brackets the rows. Alone: default / "
        "that task alone. Left out: the other two tasks / all three; 1.05 means that without the "
        "task a step takes 5 % longer.\n\n"
    )
    heads = ["method", *(f"{t} alone" for t in DECISIONS), *(f"{t} left out" for t in DECISIONS)]
    lines = []
    for method in shown:
        cells = [
            table.ratio(
                lambda row: table.mean(row, "default"),
                lambda row, m=method, t=task: table.mean(row, m, (t,)),
            )
            for task in DECISIONS
        ] + [
            table.ratio(
                lambda row, m=method, t=task: table.mean(
                    row, m, tuple(x for x in DECISIONS if x != t)
                ),
                lambda row, m=method: table.mean(row, m),
            )
            for task in DECISIONS
        ]
        lines.append([method, *cells])
    out.write(markdown_table(heads, lines))


PAIRS = (
    ("separate", "one", "a policy for each task / one policy for all"),
    ("sequential", "one", "one task after the other / jointly, from untrained weights"),
    ("sequential, tuned", "fine-tuned", "the same from the shipped weights"),
    ("composed", "one", "best stack of passes / jointly, from untrained weights"),
    ("composed", "fine-tuned", "the same against the shipped weights"),
)


def _shared(out: io.StringIO, table: Table) -> None:
    """Ways to learn against each other at equal samples."""
    shown = [pair for pair in PAIRS if table.has(pair[0]) and table.has(pair[1])]
    if not shown:
        return
    out.write(
        "\n## Jointly or not, shared or not\n\nStep times at equal samples, geometric mean and in "
        "brackets the rows; above 1 the second is better.\n\n"
    )
    lines = []
    for first, second, words in shown:
        ratio = table.ratio(
            lambda row, m=first: table.mean(row, m), lambda row, m=second: table.mean(row, m)
        )
        wins = sum(table.mean(row, first) > table.mean(row, second) for row in table.rows)
        seconds = table.ratio(
            lambda row, m=first: _seconds(table, row, m),
            lambda row, m=second: _seconds(table, row, m),
        )
        lines.append([words, ratio, str(wins), seconds])
    heads = ("comparison", "ratio", "rows that the second wins", "search seconds, ratio")
    out.write(markdown_table(heads, lines))


def _seconds(table: Table, row: str, method: str) -> float:
    joint = "+".join(JOINT)
    chosen = [r for r in table.runs if (r.row, r.method, r.tasks) == (row, method, joint)]
    return float(np.mean([run.seconds for run in chosen])) if chosen else float("nan")


def picture(runs: Sequence[Run], samples: int) -> Figure:
    """Return the figure: speed-up over the default of each row, by method."""
    table = Table(runs, samples)
    methods = [m for m in ("compiler", "composed", "one", "fine-tuned", "auto") if table.has(m)]
    figure = new_figure(11.0, 4.2)
    axes = figure.subplots()
    axes.axhspan(*(100 * x for x in PUBLISHED), color="#eeeeee", label="published, 33 to 60 %")
    for i, method in enumerate(methods):
        gains = [100 * (table.speedup(row, method) - 1) for row in table.rows]
        at = np.arange(len(gains)) + (i - (len(methods) - 1) / 2) * 0.16
        axes.bar(at, gains, 0.15, color=LINE_COLOURS[i], label=method)
    axes.axhline(0.0, color=GREY, linewidth=0.8)
    labels = [f"{row}\n{ROWS[row][1]} devices" for row in table.rows]
    axes.set_xticks(range(len(labels)), labels, rotation=30, ha="right", fontsize=8)
    axes.set_ylabel("speed-up over the default [%]")
    axes.legend(frameon=False, fontsize=9, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure
