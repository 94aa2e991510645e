"""A comparison of methods as tables: every run and the summary as CSV, the summary as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import TYPE_CHECKING

from go_rl.compare.portfolio.method_rows import HEURISTIC
from go_rl.core.printable import counted
from go_rl.core.unit_text import number_text
from go_rl.costs.models.registry import AUTO, GPUS, LEARNED
from go_rl.report.text_table import Cell, csv_table, markdown_table

if TYPE_CHECKING:
    from go_rl.compare.benchmark.evaluate import Comparison
    from go_rl.compare.benchmark.run_store import Run
    from go_rl.compare.benchmark.summary import Summary, SummaryRow

RUN_COLUMNS = (
    "graph", "nodes", "hardware", "rules", "memory", "method", "seed", "value",
    "heuristic_value", "improvement", "bound", "gap", "samples", "wall_seconds",
    "cold_seconds", "status", "detail", "decide", "decoder_calls",
)  # fmt: skip
NEVER = "never"
"""A threshold that a method's mean does not reach within the budget."""


def runs_csv(comparison: Comparison) -> str:
    """Return a row a run, SI units; ``bound`` and ``gap`` are by the best bound of the problem."""
    return csv_table(RUN_COLUMNS, (_run_cells(run, comparison) for run in comparison.runs))


def summary_csv(summary: Summary) -> str:
    """Return a row for each hardware, rule set and method; empty where there is no number."""
    columns = (
        "hardware", "rules", "method", "graphs", "seeds", "runs", "failed",
        "worse_than_heuristic", "over_bound", "improvement", "improvement_low",
        "improvement_high", "samples", "seconds", "cold_seconds",
        *(f"improvement_at_{n:g}_samples" for n in summary.samples),
        *(f"improvement_at_{n:g}_seconds" for n in summary.seconds),
        *(f"over_bound_at_{n:g}_samples" for n in summary.samples),
        *(f"samples_to_{n:g}" for n in summary.thresholds), "decide",
    )  # fmt: skip
    return csv_table(columns, (_summary_cells(row) for row in summary.rows))


def summary_markdown(comparison: Comparison, summary: Summary) -> str:
    """Return the tables of the summary, settings one after the other, under a few words."""
    from go_rl.compare.benchmark.summary import by_method, settings

    text = [_introduction(comparison)]
    for setting in settings(comparison):
        rows = [row for row in summary.rows if row.setting == setting]
        text += [
            f"## {setting.title}\n",
            *_left_out([run for run in comparison.runs if run.setting == setting]),
            "Throughput over the compiler heuristic's, by samples:\n",
            markdown_table(*samples_cells(rows, summary)),
            "T_max over the best proven bound, by samples:\n",
            _bound_table(rows, summary),
            "Throughput over the compiler heuristic's, by seconds, compilation left out:\n",
            _seconds_table(rows, summary),
            "At the end, graph by graph:\n",
            _graphs_table(comparison, by_method(comparison, setting)),
        ]
    return "\n".join([*text, *_failures(comparison.runs)])


def _run_cells(run: Run, comparison: Comparison) -> list[Cell]:
    bound = comparison.bounds[run.problem]
    gap = None if run.value is None or bound <= 0 else max(0.0, run.value / bound - 1.0)
    improvement = None if run.value is None or not run.heuristic else run.heuristic / run.value
    return [
        run.problem.graph, run.nodes, run.problem.hardware, run.problem.rules, run.problem.memory,
        run.method, run.seed, run.value, run.heuristic, improvement, bound or None, gap,
        run.samples, run.seconds, run.cold_seconds, run.status, run.detail, run.setting.decide,
        run.decoder_calls,
    ]  # fmt: skip


def _summary_cells(row: SummaryRow) -> list[Cell]:
    return [
        row.setting.hardware, row.setting.rules, row.method, row.graphs, row.seeds, row.runs,
        row.failed, row.worse, row.over_bound, *row.improvement, row.samples, row.seconds,
        row.cold_seconds,
        *row.at_samples, *row.at_seconds, *row.bound_at_samples,
        *(NEVER if n is None else n for n in row.reach), row.setting.decide,
    ]  # fmt: skip


def _introduction(comparison: Comparison) -> str:
    config = comparison.config
    chosen = {run.problem.cost for run in comparison.runs} - {AUTO}
    priced = config.cost if config.cost != AUTO else f"{LEARNED}:{GPUS} (auto)" * bool(chosen)
    samples, seconds = config.budget.samples, config.budget.seconds
    limits = [f"{samples:,} samples"] if samples is not None else []
    limits += [f"{seconds:g} s"] if seconds is not None else []
    once = [m for m in comparison.methods if m in config.once]
    alone = f" ({', '.join(once)}: one)" if once and config.seeds > 1 else ""
    graphs = len({run.problem.graph for run in comparison.runs})
    lines = [
        f"# {counted(len(comparison.methods), 'method')} on {counted(graphs, 'graph')}\n",
        f"Each run: at most {' and '.join(limits)}. Seeds: {config.seeds}{alone}.",
        *([f"Operators are priced by {priced}."] if priced else []),
        "Means over graphs are geometric; in brackets the 95 % band over seeds (Student's t).",
        "*Throughput* is that of the best plan so far over that of the compiler heuristic's plan;",
        "*T_max/bound* compares with the best proven lower bound. A run without a usable plan",
        "counts as the heuristic's plan; *worse* are runs that end behind the heuristic.",
        "*To 1.6×*: samples after which the mean throughput is that high. A dash: some run had",
        "no plan yet.\n",
    ]
    return "\n".join(lines)


def samples_cells(
    rows: Sequence[SummaryRow], summary: Summary
) -> tuple[list[str], list[list[str]]]:
    """Return heads and cells of the main table: improvement by samples, a line a method."""
    heads = ["method", "T_max/bound", "throughput", *(f"{n:,.0f}" for n in summary.samples),
             *(f"to {n:g}×" for n in summary.thresholds), "failed", "worse"]  # fmt: skip
    cells = [
        [
            row.method,
            _ratio(row.over_bound, 3),
            _band(row.improvement),
            *(_ratio(x) for x in row.at_samples),
            *(NEVER if n is None else f"{n:,.0f}" for n in row.reach),
            f"{row.failed}/{row.runs}",
            f"{row.worse}/{row.runs}",
        ]
        for row in rows
    ]
    return heads, cells


def _bound_table(rows: Sequence[SummaryRow], summary: Summary) -> str:
    heads = ["method", *(f"{n:,.0f}" for n in summary.samples), "end"]
    cells = [
        [row.method, *(_ratio(x, 3) for x in row.bound_at_samples), _ratio(row.over_bound, 3)]
        for row in rows
    ]
    return markdown_table(heads, cells)


def _seconds_table(rows: Sequence[SummaryRow], summary: Summary) -> str:
    heads = ["method", *(f"{n:g} s" for n in summary.seconds), "median samples", "median seconds",
             "warm-up seconds"]  # fmt: skip
    cells = [
        [
            row.method,
            *(_ratio(x) for x in row.at_seconds),
            f"{row.samples:,.0f}",
            f"{row.seconds:.3g}",
            number_text(row.cold_seconds, "{:.3g}"),
        ]
        for row in rows
    ]
    return markdown_table(heads, cells)


def _graphs_table(comparison: Comparison, by_method: dict[str, list[Run]]) -> str:
    from go_rl.compare.benchmark.summary import final_curve

    shown = {name: runs for name, runs in by_method.items() if name != HEURISTIC}
    problems = list(dict.fromkeys(r.problem for runs in by_method.values() for r in runs))
    nodes = {run.problem: run.nodes for run in comparison.runs}
    cells = [
        [
            problem.graph,
            f"{nodes[problem]:,}",
            *(
                _ratio(float(final_curve([r for r in runs if r.problem == problem]).mean[0]))
                for runs in shown.values()
            ),
            _ratio(_limit(comparison, by_method, problem)),
        ]
        for problem in problems
    ]
    return markdown_table(["graph", "nodes", *shown, "bound"], cells)


def _limit(comparison: Comparison, by_method: dict[str, list[Run]], problem: object) -> float:
    """Upper bound on the improvement."""
    known = [r for runs in by_method.values() for r in runs if r.problem == problem]
    bound, heuristic = comparison.bounds[known[0].problem], known[0].heuristic
    return heuristic / bound if heuristic is not None and bound > 0 else float("nan")


def _left_out(runs: Sequence[Run]) -> list[str]:
    """A line that names the graphs without a plan by the heuristic, if there are any."""
    names = dict.fromkeys(run.problem.graph for run in runs if run.heuristic is None)
    if not names:
        return []
    return [f"Not in the throughput, for the heuristic has no plan: {', '.join(names)}.\n"]


def _failures(runs: Sequence[Run]) -> list[str]:
    """Failures, one line for each method, problem and sentence."""
    lines = {
        f"- {run.method} on {run.problem.graph}, {run.setting.title}: "
        f"{run.status}. {run.detail}": None
        for run in runs
        if run.value is None
    }
    return ["## Runs without a plan\n", *lines, ""] if lines else []


def _ratio(ratio: float, digits: int = 2) -> str:
    return number_text(ratio, f"{{:.{digits}f}}×")


def _band(improvement: tuple[float, float, float]) -> str:
    mean, low, high = improvement
    band = f" [{low:.2f}, {high:.2f}]" if isfinite(low) and isfinite(high) else ""
    return _ratio(mean) + band
