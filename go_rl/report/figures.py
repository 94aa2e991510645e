"""Pictures of a plan: the loads of its devices, and the progress of each method."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from go_rl.core import Hardware, Objective, Plan
from go_rl.core.files.whole_file import whole_file
from go_rl.core.printable import printable
from go_rl.core.unit_text import Unit, byte_unit, bytes_text, unit_for

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLUE, ORANGE, GREEN, RED, PURPLE, SKY, YELLOW, BLACK = (
    "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#F0E442", "#000000",
)  # fmt: skip
"""Okabe and Ito's palette, distinguishable by all common kinds of colour vision."""
LINE_COLOURS = (BLUE, ORANGE, GREEN, RED, PURPLE, SKY, BLACK)
LINE_STYLES = ("-", "--", ":")
GREY = "#666666"
DPI = 150
FIRST_SECONDS = 1e-3
"""Left end of an axis of seconds."""


def save_loads(plan: Plan, model: str, stem: Path) -> None:
    """Write ``stem``.svg and .png: time and memory of each device under a usable plan."""
    save_figure(loads_figure(plan, model), stem)


def save_curves(plans: Sequence[Plan], bound: float, model: str, stem: Path) -> None:
    """Write ``stem``.svg and .png: best value so far of each method."""
    save_figure(curves_figure(plans, bound, model), stem)


SQUEEZED = 5.0
"""Ratio of the largest to the smallest value from which an axis is logarithmic, so that one bad
method does not squeeze the others."""
HIDDEN = 10.0
"""Capacities are drawn up to this many times the largest use of memory; larger ones would flatten
the bars."""
NAMED_RUNS = 4
"""Runs of devices that a legend names."""


def loads_figure(plan: Plan, model: str) -> Figure:
    """Return the picture of a plan's loads: seconds above, bytes below, a column a device."""
    devices = len(plan.evaluation.device_seconds)
    figure = new_figure(min(14.0, 5.5 + 0.16 * devices), 6.2)
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    _draw_seconds(upper, plan)
    _draw_memory(lower, plan)
    step = max(1, -(-devices // 24))
    lower.set_xticks(range(0, devices, step))
    lower.set_xlim(-0.7, devices - 0.3)
    word = Objective(plan.objective).traits.device
    lower.set_xlabel("device (accelerators first, then CPUs)" if _has_cpus(plan) else word)
    _title(figure, f"{model}, plan by {plan.optimizer}", plan)
    return figure


def curves_figure(plans: Sequence[Plan], bound: float, model: str) -> Figure:
    """Return the picture of best value so far against priced samples and against seconds."""
    figure = new_figure(9.5, 4.2)
    left, right = figure.subplots(1, 2, sharey=True)
    values = [p.seconds for plan in plans for p in plan.curve]
    finite = [v for v in values if np.isfinite(v)]
    unit = unit_for(min([*finite, bound] if bound > 0 else finite, default=0.0))
    for i, plan in enumerate(plans):
        # Earlier lines are thicker, so that lines that coincide can all be seen.
        _draw_curve((left, right), plan, unit, i, 1.4 + 2.6 * (len(plans) - 1 - i) / len(plans))
    for axes, label, first in ((left, "priced samples", 1.0), (right, "seconds", FIRST_SECONDS)):
        _log_axis(axes, first)
        axes.set_xlabel(label)
        if bound > 0 and np.isfinite(bound):
            axes.axhline(bound * unit[0], color=GREY, linewidth=1, linestyle=(0, (1, 1)),
                         label="proven bound" if axes is left else None)  # fmt: skip
    if finite and max(finite) > SQUEEZED * max(min(finite), 1e-30):
        log_values(left)
    left.set_ylabel(f"best objective so far [{unit[1]} an iteration]")
    if plans:
        _title(figure, model, plans[0])
    handles, labels = left.get_legend_handles_labels()
    if handles:
        figure.legend(handles, labels, loc="outside right upper", frameon=False)
    return figure


def log_values(axes: Axes) -> None:
    """A logarithmic axis of values, with plain numbers also between decades where these are few."""
    from matplotlib.ticker import FuncFormatter, LogLocator

    axes.set_yscale("log")
    low, high = axes.get_ylim()
    between = (1.0, 2.0, 5.0) if high < 1e3 * low else (1.0,)
    axes.yaxis.set_major_locator(LogLocator(subs=between))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.4g}"))
    axes.minorticks_off()


def _log_axis(axes: Axes, first: float) -> None:
    """Logarithmic from ``first`` over a decade at least, labels at decades: those between would
    overlap."""
    from matplotlib.ticker import NullFormatter

    axes.set_xscale("log")
    axes.set_xlim(first / 1.1, max(10 * first, 1.1 * axes.dataLim.x1))
    axes.xaxis.set_minor_formatter(NullFormatter())


def _draw_seconds(axes: Axes, plan: Plan) -> None:
    evaluation = plan.evaluation
    compute, links = evaluation.device_seconds, evaluation.link_seconds
    has_links = bool(len(links) == len(compute) and links.any())
    unit = unit_for(max(float(compute.max(initial=0.0)), plan.value))
    devices, width = np.arange(len(compute)), 0.4 if has_links else 0.8
    shift = width / 2 if has_links else 0.0
    label = "compute" if Objective(plan.objective).traits.is_pipeline else "load"
    axes.bar(devices - shift, compute * unit[0], width, color=BLUE, label=label)
    if has_links:
        axes.bar(np.arange(len(links)) + shift, links * unit[0], width, color=ORANGE,
                 label="link to the next chip")  # fmt: skip
    goal = Objective(plan.objective).traits.value_name
    axes.axhline(plan.value * unit[0], color=BLACK, linewidth=1.2,
                 label=f"{goal} {plan.value * unit[0]:.4g} {unit[1]}")  # fmt: skip
    if 0 < plan.bound < np.inf:
        axes.axhline(plan.bound * unit[0], color=RED, linewidth=1.2, linestyle="--",
                     label=f"proven bound {plan.bound * unit[0]:.4g} {unit[1]}")  # fmt: skip
    axes.set_ylabel(f"{unit[1]} an iteration")
    axes.set_ylim(bottom=0)
    _legend(axes)


def _draw_memory(axes: Axes, plan: Plan) -> None:
    evaluation = plan.evaluation
    weights, peak = evaluation.weight_bytes, evaluation.peak_bytes
    top = float(max(weights.max(initial=0.0), peak.max(initial=0.0)))
    scale, name = byte_unit(top)
    devices = np.arange(len(weights))
    axes.bar(devices, weights / scale, 0.8, color=GREEN, label="weights")
    axes.bar(devices, np.maximum(peak - weights, 0) / scale, 0.8, bottom=weights / scale, color=SKY,
             label="live tensors at the peak")  # fmt: skip
    _draw_capacity(axes, plan, top, scale)
    axes.set_ylabel(f"memory [{name}]")
    axes.set_ylim(bottom=0)
    _legend(axes)


def _draw_capacity(axes: Axes, plan: Plan, top: float, scale: float) -> None:
    """A line a device where its capacity is on the scale, else its capacity in words; devices may
    differ."""
    capacity = _capacity(plan)
    word = Objective(plan.objective).traits.device
    place, checked = np.arange(len(capacity)), "" if plan.memory else " (not checked)"
    near = capacity < HIDDEN * max(top, 1.0)
    if near.any():
        shown = np.where(near, capacity, np.nan)
        axes.hlines(shown / scale, place - 0.5, place + 0.5, color=BLACK, linewidth=1.2,
                    label=f"capacity{checked}")  # fmt: skip
    for size in np.unique(capacity[~near]):
        held = np.flatnonzero(capacity == size)
        where = (
            ""
            if len(held) == len(capacity)
            else f" of {word}{'s' * (len(held) > 1)} {_ranges(held)}:"
        )
        axes.plot([], [], " ", label=f"capacity{where} {bytes_text(float(size))}, off the scale")


def _ranges(devices: np.ndarray) -> str:
    """Devices in words: ``0-3, 6``; of many separate ones the first and a count."""
    runs = np.split(devices, np.flatnonzero(np.diff(devices) > 1) + 1)
    words = [str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs]
    if len(words) > NAMED_RUNS:
        return f"{words[0]}, {words[1]}, … ({len(devices)} devices)"
    return ", ".join(words)


def _capacity(plan: Plan) -> np.ndarray:
    return np.array([device.memory_bytes for device in Hardware.from_json(plan.hardware).devices])


def _has_cpus(plan: Plan) -> bool:
    return any(group.get("is_cpu") for group in plan.hardware["devices"])


def _draw_curve(panels: tuple[Axes, Axes], plan: Plan, unit: Unit, i: int, width: float) -> None:
    points = [p for p in plan.curve if np.isfinite(p.seconds)]
    if not points:
        return
    values = [p.seconds * unit[0] for p in points]
    last, (left, right) = values[-1], panels
    samples = [max(p.samples, 1) for p in points] + [max(plan.samples, points[-1].samples, 1)]
    seconds = [max(p.wall_seconds, FIRST_SECONDS) for p in points]
    seconds.append(max(plan.wall_seconds, seconds[-1]))
    look: dict[str, Any] = {
        "where": "post", "color": LINE_COLOURS[i % len(LINE_COLOURS)], "linewidth": width,
        "linestyle": LINE_STYLES[i // len(LINE_COLOURS) % len(LINE_STYLES)],
        "marker": "o", "markersize": 3, "markevery": [0, len(values)],
    }  # fmt: skip
    left.step(samples, [*values, last], label=plan.optimizer, **look)
    right.step(seconds, [*values, last], **look)


def _title(figure: Figure, words: str, plan: Plan) -> None:
    rules = f", rules {plan.rules}" if Objective(plan.objective).traits.has_rules else ""
    text = f"{words} · {plan.hardware['name']}, {plan.objective}{rules}"
    figure.suptitle(text, x=0.01, ha="left", fontsize=11)


def _legend(axes: Axes) -> None:
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False, fontsize=9)


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure, sizes in inches, that draws without a display."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure((width, height), layout="constrained", dpi=DPI)
    FigureCanvasAgg(figure)
    return figure


def save_figure(figure: Figure, stem: Path) -> None:
    """Write ``stem``.svg and .png; equal figures give equal files."""
    import matplotlib as mpl
    from matplotlib.text import Text

    for axes in figure.axes:
        axes.spines[["top", "right"]].set_visible(False)
        if not axes.images:
            axes.grid(axis="y", color="#dddddd", linewidth=0.6)
        axes.set_axisbelow(True)
    for text in figure.findobj(Text):
        if isinstance(text, Text) and text.get_text() == figure.get_suptitle():
            text.set_parse_math(False)  # a model may be called $x$
            text.set_text(printable(text.get_text()))
    # Both files share one layout, which takes as long as drawing.
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    # Fixed ids and no date: equal plans give equal files.
    fixed = mpl.rc_context({"svg.hashsalt": "go_rl", "svg.fonttype": "none"})
    with fixed, whole_file(stem.with_suffix(".svg")) as file:
        figure.savefig(file, format="svg", metadata={"Date": None})
    with whole_file(stem.with_suffix(".png")) as file:
        figure.savefig(file, format="png")
