"""Picture of tuning: the best so far against minutes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from go_rl.report.figures import BLUE, GREY, new_figure, save_figure
from go_rl.report.tables import unit_for
from go_rl.tuning.outcome import Tuned

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def save_tuning_curve(tuned: Tuned, stem: Path) -> None:
    """Write ``stem``.svg and .png."""
    save_figure(tuning_figure(tuned), stem)


def tuning_figure(tuned: Tuned) -> Figure:
    """Return the picture of the best seconds so far, as measured while tuning."""
    figure = new_figure(7.0, 4.2)
    axes = figure.subplots()
    scale, unit = unit_for(min(point.seconds for point in tuned.curve))
    minutes = [*(point.minutes for point in tuned.curve), tuned.minutes]
    seconds = [scale * point.seconds for point in tuned.curve]
    default = [scale * point.default_seconds for point in tuned.curve]
    axes.step(minutes, [*default, default[-1]], where="post", color=GREY, linewidth=1,
              linestyle=(0, (1, 1)), label="XLA's default")  # fmt: skip
    axes.step(minutes, [*seconds, seconds[-1]], where="post", color=BLUE, marker="o", markersize=3)
    axes.set_xlabel("minutes of tuning")
    axes.set_ylabel(f"best sum of kernels so far [{unit}]")
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False)
    figure.suptitle(f"{tuned.model} on {tuned.target}, guide {tuned.guide}", x=0.01, ha="left")
    return figure
