"""The folder that ``go-rl evaluate`` writes: tables, and curves with their confidence bands."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float64

from go_rl.core import TrainingError
from go_rl.core.files.whole_file import write_text, writing
from go_rl.report.comparison_tables import runs_csv, summary_csv, summary_markdown
from go_rl.report.control_tables import control_csv, control_markdown
from go_rl.report.figures import (
    BLACK,
    BLUE,
    FIRST_SECONDS,
    GREEN,
    GREY,
    LINE_STYLES,
    ORANGE,
    PURPLE,
    RED,
    SKY,
    SQUEEZED,
    log_values,
    new_figure,
    save_figure,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from go_rl.compare.benchmark.comparison import Axis, Curve
    from go_rl.compare.benchmark.evaluate import Comparison
    from go_rl.compare.benchmark.run_store import Run, Setting
    from go_rl.compare.benchmark.summary import Summary
    from go_rl.compare.controls.control_table import ControlRow

FILES = ("runs.csv", "summary.csv", "summary.md", "curves_samples.svg", "curves_samples.png",
         "curves_seconds.svg", "curves_seconds.png")  # fmt: skip
"""Files of the folder beside runs.jsonl."""
CONTROL_FILES = ("controls.csv", "controls.md")
"""Further files of a comparison with control arms."""
COLOURS = (BLUE, ORANGE, GREEN, RED, PURPLE, SKY, BLACK)
POINTS = 200
"""Grid points of a curve over seconds."""
LEAST_SAMPLES = 10.0
"""Minimum end of the axis of samples."""
PANEL = (4.6, 3.4)
"""Inches of one panel."""
STRETCH = 1.6
"""Factor by which bands and a bound may widen an axis beyond the means."""
LABELS = {"samples": "priced samples", "seconds": "seconds, compilation left out"}


def write_comparison(comparison: Comparison, folder: str | Path, summary: Summary) -> None:
    """Write `FILES` into ``folder``.

    Raises:
        TrainingError: it cannot be written.
    """
    folder = Path(folder)
    with writing(folder, TrainingError):
        write_text(folder / "runs.csv", runs_csv(comparison))
        write_text(folder / "summary.csv", summary_csv(summary))
        write_text(folder / "summary.md", summary_markdown(comparison, summary))
        for axis in ("samples", "seconds"):
            save_figure(comparison_figure(comparison, axis), folder / f"curves_{axis}")


def write_controls(rows: Sequence[ControlRow], folder: str | Path) -> None:
    """Write `CONTROL_FILES` into ``folder``.

    Raises:
        TrainingError: it cannot be written.
    """
    with writing(folder, TrainingError):
        write_text(Path(folder) / CONTROL_FILES[0], control_csv(rows))
        write_text(Path(folder) / CONTROL_FILES[1], control_markdown(rows))


def comparison_figure(comparison: Comparison, axis: Axis) -> Figure:
    """Return throughput over the heuristic's by samples or seconds: a panel for each setting.

    Lines are geometric means over graphs and seeds, bands their 95 % confidence over seeds; the
    grey line is the best that the proven bounds leave possible.
    """
    from go_rl.compare.benchmark.summary import by_method, settings

    shown = settings(comparison)
    columns = min(len(shown), max(len({s.hardware for s in shown}), 1))
    rows = -(-len(shown) // columns)
    figure = new_figure(PANEL[0] * columns + 2.2, PANEL[1] * rows + 0.4)
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    grid = _grid(comparison.runs, axis)
    for panel, setting in zip(panels, _by_rules(shown), strict=False):
        _draw(panel, by_method(comparison, setting), comparison, grid, axis)
        panel.set_title(setting.title, fontsize=10, loc="left")
        panel.set_xlabel(LABELS[axis])
    for panel in panels[len(shown) :]:
        panel.set_visible(False)
    for panel in panels[::columns]:
        panel.set_ylabel("throughput over the\ncompiler heuristic's")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right upper", frameon=False)
    graphs = len({run.problem.graph for run in comparison.runs})
    mean = f"mean of {graphs} graphs" if graphs > 1 else "one graph"
    text = f"Best plan so far, {mean}; bands: 95 % over {comparison.config.seeds}"
    figure.suptitle(f"{text} seeds", x=0.01, ha="left", fontsize=11)
    return figure


def _by_rules(settings: Sequence[Setting]) -> list[Setting]:
    """Hardware side by side, rule sets below each other."""
    order = {rules: i for i, rules in enumerate(dict.fromkeys(s.rules for s in settings))}
    return sorted(settings, key=lambda s: order[s.rules])


def _grid(runs: Sequence[Run], axis: Axis) -> Float64[np.ndarray, "P"]:
    from go_rl.compare.benchmark.comparison import change_points

    ends = [float(run.samples if axis == "samples" else run.seconds) for run in runs]
    last = max(ends, default=1.0)
    if axis == "samples":
        return np.unique([1.0, *change_points(runs), max(last, LEAST_SAMPLES)])
    return np.geomspace(FIRST_SECONDS, max(last, 10 * FIRST_SECONDS), POINTS)


def _draw(
    panel: Axes,
    methods: dict[str, list[Run]],
    comparison: Comparison,
    grid: Float64[np.ndarray, "P"],
    axis: Axis,
) -> None:
    from go_rl.compare.benchmark.comparison import throughput_curve

    curves = [throughput_curve(runs, grid, axis) for runs in methods.values()]
    for i, (method, curve) in enumerate(zip(methods, curves, strict=True)):
        colour = COLOURS[i % len(COLOURS)]
        look: dict[str, Any] = {"color": colour, "linewidth": 1.6}
        look["linestyle"] = LINE_STYLES[i // len(COLOURS) % len(LINE_STYLES)]
        panel.step(grid, curve.mean, where="post", label=method, **look)
        panel.fill_between(grid, curve.low, curve.high, step="post", color=colour, alpha=0.15,
                           linewidth=0)  # fmt: skip
    limit = _limit(next(iter(methods.values())), comparison)
    _draw_limit(panel, limit, _scale_values(panel, curves, limit))
    panel.set_xscale("log")
    panel.set_xlim(grid[0], grid[-1])


def _scale_values(panel: Axes, curves: Sequence[Curve], limit: float) -> float:
    """Fit the axis to the means; bands and the ``limit`` may stretch it by `STRETCH` only, and
    methods far below the others make it logarithmic. Return its upper end."""
    means = np.concatenate([curve.mean for curve in curves])
    means = means[np.isfinite(means) & (means > 0)]
    if not means.size:
        return np.inf
    lows, highs = (np.concatenate([getattr(c, end) for c in curves]) for end in ("low", "high"))
    bottom = max(np.nanmin(lows, initial=means.min()), means.min() / STRETCH)
    seen = [np.nanmax(highs, initial=means.max()), limit if np.isfinite(limit) else 0.0]
    top = max(means.max(), min(max(seen), STRETCH * means.max()))
    panel.set_ylim(bottom / 1.05, top * 1.05)
    if top > SQUEEZED * bottom:
        log_values(panel)
    return float(top * 1.05)


def _draw_limit(panel: Axes, limit: float, top: float) -> None:
    if not np.isfinite(limit):
        return
    look: dict[str, Any] = {"color": GREY, "linewidth": 1, "linestyle": (0, (1, 1))}
    panel.axhline(limit, label="proven bound", **look)
    if limit > top:
        panel.annotate(f"bound {limit:.3g}×, above", (0.99, 0.97), xycoords="axes fraction",
                       ha="right", va="top", fontsize=8, color=GREY)  # fmt: skip


def _limit(runs: Sequence[Run], comparison: Comparison) -> float:
    """Geometric mean of the improvement that the bounds allow; nan: some are missing."""
    known = {r.problem: (r.heuristic, comparison.bounds[r.problem]) for r in runs if r.heuristic}
    if not known or any(bound <= 0 for _, bound in known.values()):
        return float("nan")
    return float(np.exp(np.mean([np.log(value / bound) for value, bound in known.values()])))
