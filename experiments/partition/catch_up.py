"""How many samples methods need: to a throughput, and to another method's final result."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from go_rl.compare.benchmark.comparison import (
    Axis,
    change_points,
    samples_to_reach,
    throughput_curve,
)
from go_rl.compare.benchmark.evaluate import Comparison
from go_rl.compare.benchmark.run_store import Run
from go_rl.compare.benchmark.summary import by_method, settings
from go_rl.report.text_table import markdown_table

CATCH_UP = ("method", "runs that reach it", "samples, median", "seconds, median",
            "scratch: samples", "scratch: seconds")  # fmt: skip


def reach_value(run: Run, value: float, axis: Axis = "samples") -> float | None:
    """Return the samples or seconds after which a run is as good as ``value``; None: never."""
    for samples, seconds, reached in run.curve:
        if reached <= value * (1 + 1e-9):
            return float(samples) if axis == "samples" else seconds
    return None


def runs_of(comparison: Comparison, method: str) -> list[Run]:
    """Return the runs of a method in the one setting."""
    (setting,) = settings(comparison)
    return by_method(comparison, setting).get(method, [])


def reach_rows(comparison: Comparison, limits: Sequence[float]) -> list[list[str]]:
    """Return a line for each method: samples until its mean curve reaches each limit."""
    reached = []
    for method in comparison.methods:
        found = runs_of(comparison, method)
        reach = samples_to_reach(throughput_curve(found, change_points(found)), limits)
        reached.append([method, *("never" if x is None else f"{x:.0f}" for x in reach)])
    return reached


def catch_up_table(comparison: Comparison, final: str) -> str:
    """Return the table of how soon every method is as good as ``final`` at its end."""
    later = [
        _catch_up(comparison, method, final)
        for method in comparison.methods
        if method not in (final, "greedy")
    ]
    return markdown_table(CATCH_UP, later)


def _catch_up(comparison: Comparison, method: str, last: str) -> list[str]:
    """One line: how soon a method is as good as the learner from scratch at its end."""
    final = {(r.problem, r.seed): r for r in runs_of(comparison, last) if r.value is not None}
    samples, seconds, total = [], [], 0
    for run in runs_of(comparison, method):
        rival = final.get((run.problem, run.seed))
        if rival is None or rival.value is None:
            continue
        total += 1
        at = reach_value(run, rival.value)
        when = reach_value(run, rival.value, "seconds")
        if at is not None and when is not None:
            samples.append(at)
            seconds.append(when)
    own = [reach_value(r, r.value or 0.0) or 0.0 for r in final.values()]
    when = [reach_value(r, r.value or 0.0, "seconds") or 0.0 for r in final.values()]
    middle = [f"{np.median(x):.4g}" if x else "–" for x in (samples, seconds, own, when)]
    return [method, f"{len(samples)} of {total}", *middle]
