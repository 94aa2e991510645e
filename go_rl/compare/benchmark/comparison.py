"""Statistics of a comparison: mean curves over graphs with their band over seeds, and thresholds.

Improvement is the compiler heuristic's T_max over that of the best plan so far; means over graphs
are geometric. ``P`` grid points, ``S`` seeds, ``G`` graphs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float64
from scipy.special import stdtrit

from go_rl.compare.benchmark.run_store import ProblemName, Run
from go_rl.core import TrainingError

Axis = Literal["samples", "seconds"]
"""Horizontal axis of a curve: priced plans, or time without compilation."""
CONFIDENCE = 0.95
"""Confidence level of the band: Student's t over seeds, on the logarithm."""


@dataclass(frozen=True)
class Curve:
    """A ratio by samples or seconds; nan where some run has no plan yet."""

    grid: Float64[np.ndarray, "P"]
    """[P] samples or seconds."""
    mean: Float64[np.ndarray, "P"]
    """[P] geometric mean over graphs and seeds."""
    low: Float64[np.ndarray, "P"]
    """[P] lower end of the band; nan with one seed."""
    high: Float64[np.ndarray, "P"]
    """[P] upper ends of the intervals."""
    graphs: int
    """Graphs in the mean."""
    seeds: int
    """Seeds in the mean."""


def best_so_far(
    run: Run, grid: Float64[np.ndarray, "P"], axis: Axis = "samples"
) -> Float64[np.ndarray, "P"]:
    """Return [P] T_max of the best plan so far; nan before the first plan.

    A run that failed stands for the compiler heuristic's plan, with which a user is left then.
    """
    if run.value is None:
        return np.full(len(grid), np.nan if run.heuristic is None else run.heuristic)
    steps = np.array([[p[0] if axis == "samples" else p[1], p[2]] for p in run.curve])
    if not len(steps):
        return np.full(len(grid), run.value)
    last = np.searchsorted(steps[:, 0], grid, side="right") - 1
    return np.where(last >= 0, steps[np.maximum(last, 0), 1], np.nan)


def throughput_curve(
    runs: Sequence[Run], grid: Float64[np.ndarray, "P"], axis: Axis = "samples"
) -> Curve:
    """Return one method's throughput over that of the compiler heuristic.

    Args:
        runs: of one method in one setting. Graphs on which the heuristic has no plan are left out.
        grid: samples or seconds, rising.
        axis: which of them.

    Raises:
        TrainingError: the seeds did not run on the same graphs.
    """
    usable = [run for run in runs if run.heuristic is not None]
    return _mean_curve(usable, grid, lambda run: run.heuristic / best_so_far(run, grid, axis))  # pyright: ignore[reportOptionalOperand]


def bound_curve(
    runs: Sequence[Run], bounds: Mapping[ProblemName, float], grid: Float64[np.ndarray, "P"]
) -> Curve:
    """Return one method's T_max over the best proven bound; arguments as `throughput_curve`.

    Graphs without a bound, or without any plan by this method or the heuristic, are left out.
    """
    lost = {run.problem for run in runs if run.value is None and run.heuristic is None}
    usable = [run for run in runs if bounds[run.problem] > 0 and run.problem not in lost]
    return _mean_curve(usable, grid, lambda run: best_so_far(run, grid) / bounds[run.problem])


def samples_to_reach(curve: Curve, thresholds: Sequence[float]) -> tuple[float | None, ...]:
    """Return the first grid point at which the mean reaches each threshold; None: never."""
    found = [np.flatnonzero(curve.mean >= threshold) for threshold in thresholds]
    return tuple(float(curve.grid[i[0]]) if len(i) else None for i in found)


def change_points(runs: Sequence[Run]) -> Float64[np.ndarray, "P"]:
    """Return the samples at which any of the runs improves: the exact grid of their mean curve."""
    return np.unique(np.array([samples for run in runs for samples, *_ in run.curve], np.float64))


def _mean_curve(
    runs: Sequence[Run],
    grid: Float64[np.ndarray, "P"],
    ratio: Callable[[Run], Float64[np.ndarray, "P"]],
) -> Curve:
    by_seed: dict[int, dict[ProblemName, np.ndarray]] = {}
    for run in runs:
        by_seed.setdefault(run.seed, {})[run.problem] = np.log(ratio(run))
    names = {frozenset(logs) for logs in by_seed.values()}
    if len(names) > 1:
        raise TrainingError("a mean over seeds needs every seed on the same graphs")
    nothing = np.full(len(grid), np.nan)
    if not by_seed:
        return Curve(grid, nothing, nothing, nothing, 0, 0)
    seeds = np.array([np.mean(list(logs.values()), axis=0) for logs in by_seed.values()])
    mean, half = seeds.mean(axis=0), _half_width(seeds)
    (graphs,) = names
    return Curve(
        grid, np.exp(mean), np.exp(mean - half), np.exp(mean + half), len(graphs), len(seeds)
    )


def _half_width(logs: Float64[np.ndarray, "S P"]) -> Float64[np.ndarray, "P"]:
    """[P] half of the confidence interval of the mean over seeds."""
    count = len(logs)
    if count < 2:
        return np.full(logs.shape[1], np.nan)
    error = logs.std(axis=0, ddof=1) / np.sqrt(count)
    return float(stdtrit(count - 1, 0.5 + CONFIDENCE / 2)) * error
