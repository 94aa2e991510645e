"""One line of a comparison's summary for each hardware, rule set and method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from go_rl.compare.benchmark.comparison import (
    Axis,
    Curve,
    bound_curve,
    change_points,
    samples_to_reach,
    throughput_curve,
)
from go_rl.compare.benchmark.evaluate import Comparison
from go_rl.compare.benchmark.run_store import Run, Setting

SAMPLE_GRID = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000)
SECOND_GRID = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
WORSE = 1e-9
"""Share by which a plan must be slower than the heuristic's to count as worse."""


@dataclass(frozen=True)
class SummaryRow:
    """One method in one setting; nan or None where there is no number."""

    setting: Setting
    method: str
    graphs: int
    """Graphs in the mean improvement."""
    seeds: int
    runs: int
    failed: int
    """Runs without a usable plan; each stands for the heuristic's plan."""
    worse: int
    """Runs whose best plan is slower than the heuristic's."""
    over_bound: float
    """T_max over the best proven bound at the end, geometric mean."""
    bound_at_samples: tuple[float, ...]
    """T_max over the best proven bound at each of the table's sample counts."""
    improvement: tuple[float, float, float]
    """Throughput over the heuristic's at the end: mean, lower and upper end of the band."""
    at_samples: tuple[float, ...]
    """Mean improvement at each of the table's sample counts."""
    at_seconds: tuple[float, ...]
    """Mean improvement at each of the table's times."""
    reach: tuple[float | None, ...]
    """Samples to reach each threshold of the improvement; None: never."""
    samples: float
    """Samples of a run, median over runs."""
    seconds: float
    """Median over runs, compilation left out."""
    cold_seconds: float | None
    """Warm-up run, compilation included, largest over runs; None: nothing to compile."""


@dataclass(frozen=True)
class Summary:
    """All rows, and what their columns stand for."""

    rows: tuple[SummaryRow, ...]
    samples: tuple[float, ...]
    """Sample counts of `SummaryRow.at_samples`."""
    seconds: tuple[float, ...]
    """Times of `SummaryRow.at_seconds`."""
    thresholds: tuple[float, ...]


def summarise(comparison: Comparison) -> Summary:
    """Return the summary of a comparison, settings in the order of its configuration."""
    samples = grid_of(comparison.runs, "samples")
    seconds = grid_of(comparison.runs, "seconds")
    rows = [
        _row(comparison, runs, (samples, seconds))
        for setting in settings(comparison)
        for runs in by_method(comparison, setting).values()
    ]
    return Summary(tuple(rows), samples, seconds, comparison.config.thresholds)


def settings(comparison: Comparison) -> tuple[Setting, ...]:
    """Return the hardware and rule sets in order."""
    return tuple(dict.fromkeys(run.setting for run in comparison.runs))


def by_method(comparison: Comparison, setting: Setting) -> dict[str, list[Run]]:
    """Return the runs of one setting by method, in the comparison's order."""
    runs = [run for run in comparison.runs if run.setting == setting]
    return {method: [r for r in runs if r.method == method] for method in comparison.methods}


def final_curve(runs: Sequence[Run]) -> Curve:
    """Return the improvement at the end of the runs as a curve of one point."""
    return throughput_curve(runs, np.array([np.inf]))


def grid_of(runs: Sequence[Run], axis: Axis) -> tuple[float, ...]:
    """Return the round numbers up to where the longest run ends; at least one."""
    ends = [run.samples if axis == "samples" else run.seconds for run in runs]
    last = max(ends, default=0)
    grid = SAMPLE_GRID if axis == "samples" else SECOND_GRID
    return tuple(float(x) for x in grid if x <= last) or (float(grid[0]),)


def _row(
    comparison: Comparison, runs: Sequence[Run], grids: tuple[tuple[float, ...], tuple[float, ...]]
) -> SummaryRow:
    end, exact = final_curve(runs), throughput_curve(runs, change_points(runs))
    at_samples, at_seconds = (_at(runs, g, a) for g, a in zip(grids, _AXES, strict=True))
    bound = bound_curve(runs, comparison.bounds, np.array([*grids[0], np.inf])).mean.tolist()
    cold = [run.cold_seconds for run in runs if run.cold_seconds is not None]
    return SummaryRow(
        setting=runs[0].setting,
        method=runs[0].method,
        graphs=end.graphs,
        seeds=end.seeds,
        runs=len(runs),
        failed=sum(run.value is None for run in runs),
        worse=sum(_worse(run) for run in runs),
        over_bound=bound[-1],
        bound_at_samples=tuple(bound[:-1]),
        improvement=(float(end.mean[0]), float(end.low[0]), float(end.high[0])),
        at_samples=at_samples,
        at_seconds=at_seconds,
        reach=samples_to_reach(exact, comparison.config.thresholds),
        samples=float(np.median([run.samples for run in runs])),
        seconds=float(np.median([run.seconds for run in runs])),
        cold_seconds=max(cold) if cold else None,
    )


_AXES: tuple[Axis, Axis] = ("samples", "seconds")


def _at(runs: Sequence[Run], grid: tuple[float, ...], axis: Axis) -> tuple[float, ...]:
    points: Float64[np.ndarray, "P"] = np.array(grid, np.float64)
    return tuple(throughput_curve(runs, points, axis).mean.tolist())


def _worse(run: Run) -> bool:
    if run.value is None or run.heuristic is None:
        return False
    return run.value > run.heuristic * (1 + WORSE)
