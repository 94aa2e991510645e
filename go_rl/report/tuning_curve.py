"""Picture of tuning: the best so far against minutes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from go_rl.core.unit_text import unit_for
from go_rl.report.figures import BLUE, GREY, SQUEEZED, log_values, new_figure, save_figure
from go_rl.tuning.tvm.tuned_network import TunedNetwork
from go_rl.tuning.xla.outcome import Tuned

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def save_tuning_curve(tuned: Tuned, stem: Path) -> None:
    """Write ``stem``.svg and .png."""
    save_figure(tuning_figure(tuned), stem)


def tuning_figure(tuned: Tuned) -> Figure:
    """Return the picture of the best seconds so far, as measured while tuning."""
    points = tuned.curve
    figure = _curve_figure(
        [point.minutes for point in points],
        [[point.default_seconds for point in points], [point.seconds for point in points]],
        tuned.minutes,
        ("XLA's default", "best sum of kernels so far"),
    )
    figure.suptitle(f"{tuned.model} on {tuned.target}, guide {tuned.guide}", x=0.01, ha="left")
    return figure


def save_network_curve(tuned: TunedNetwork, stem: Path) -> None:
    """Write ``stem``.svg and .png."""
    save_figure(network_figure(tuned), stem)


def network_figure(tuned: TunedNetwork) -> Figure:
    """Return the picture of the network's latency so far, as measured while tuning."""
    points = tuned.curve
    figure = _curve_figure(
        [point.minutes for point in points],
        [[points[0].seconds] * len(points), [point.seconds for point in points]],
        tuned.minutes,
        ("TVM's default schedules", "latency so far"),
    )
    title = f"{tuned.model} on {tuned.target}, {tuned.scheduler} over {tuned.tuner}"
    figure.suptitle(title, x=0.01, ha="left")
    return figure


def _curve_figure(
    minutes: Sequence[float], seconds: Sequence[Sequence[float]], end: float, names: tuple[str, str]
) -> Figure:
    """Draw the time before tuning and the best so far, each from its minutes on until the end."""
    figure = new_figure(7.0, 4.2)
    axes = figure.subplots()
    scale, unit = unit_for(min(seconds[1]))
    times = [*minutes, max(end, minutes[-1])]
    default, best = ([scale * x for x in (*each, each[-1])] for each in seconds)
    axes.step(times, default, where="post", color=GREY, linewidth=1, linestyle=(0, (1, 1)),
              label=names[0])  # fmt: skip
    axes.step(times, best, where="post", color=BLUE, marker="o", markersize=3)
    axes.set_xlabel("minutes of tuning")
    axes.set_ylabel(f"{names[1]} [{unit}]")
    if max(default) > SQUEEZED * min(best):
        log_values(axes)
    else:
        axes.set_ylim(bottom=0)
    axes.legend(frameon=False)
    return figure
