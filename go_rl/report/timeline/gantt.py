"""A timeline as a picture: a row for each engine and link, coloured by kind of work.

Slices are far more than pixels: each row is cut into `COLUMNS`, and a column is drawn in the colour
of whatever takes most of its busy time, the paler the less of it is busy. The busy share of the
whole row is printed at its end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float64, Int64

from go_rl.objectives.makespan.simulate.timeline import TRANSFER, Slice, Timeline
from go_rl.report.figures import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    RED,
    SKY,
    YELLOW,
    new_figure,
    save_figure,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMNS = 1600
"""Columns of the picture; about the pixels of a row."""
MOST_ROWS = 40
"""Beyond, the links of each sender share a row; if that is not enough, the engines of a device;
then idle devices are left out."""
SHADES = 4
"""Number of shades for busyness; the faintest is 1 / `SHADES` of the colour."""
MOST_BOXES = 4000
"""Beyond, boxes are drawn as pixels in the SVG too."""
KIND_COLOURS = {
    "matmul": BLUE, "convolution": PURPLE, "elementwise": GREEN, "reduction": ORANGE,
    "movement": SKY, "gather": YELLOW, "control": BLACK, "other": GREY, TRANSFER: RED,
}  # fmt: skip


@dataclass(frozen=True)
class GanttRow:
    """A line of the picture."""

    label: str
    tracks: tuple[int, ...]
    """Tracks that share it."""


@dataclass(frozen=True, eq=False)
class Boxes:
    """Boxes of a row, and how busy it is."""

    start: Int64[np.ndarray, "X"]
    """[X] first column of each box."""
    end: Int64[np.ndarray, "X"]
    """[X] column after its last."""
    colour: Int64[np.ndarray, "X"]
    """[X] index of the colour."""
    shade: Int64[np.ndarray, "X"]
    """[X] 1 to `SHADES`; the last is the full colour."""
    busy: float
    """Share of the iteration, mean over the tracks of the row."""


def save_gantt(timeline: Timeline, stem: Path) -> None:
    """Write ``stem``.svg and .png; equal timelines give equal files."""
    save_figure(gantt_figure(timeline), stem)


def gantt_figure(timeline: Timeline) -> Figure:
    """Return the picture of an iteration, each operator in the colour of its kind."""
    rows = gantt_rows(timeline)
    boxes = _boxes(timeline, rows, [_kind_of(piece) for piece in timeline.slices])
    figure = new_figure(12.0, 1.3 + max(0.26 * len(rows), 1.0))
    axes = figure.subplots()
    _draw(axes, boxes, [*KIND_COLOURS.values()], timeline.makespan * 1e3 / COLUMNS)
    shares = [(-0.7, "busy"), *((y, f"{found.busy:.0%}") for y, found in enumerate(boxes))]
    for y, text in shares:
        axes.annotate(text, (1.005, y), xycoords=("axes fraction", "data"), va="center",
                      fontsize=_font(len(rows)), color=GREY)  # fmt: skip
    axes.set_yticks(range(len(rows)), [row.label for row in rows], fontsize=_font(len(rows)))
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_xlim(0, max(timeline.makespan * 1e3, 1e-12))
    axes.set_xlabel("ms")
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", color="#dddddd", linewidth=0.6)
    _legend(figure, boxes)
    drawn = {timeline.tracks[i].device for row in rows for i in row.tracks}
    idle = len(timeline.device_kinds) - len(drawn)
    hidden = f" · {idle} idle devices not shown" if idle else ""
    failed = "" if timeline.status.ok else f" · {timeline.status.sentence}"
    title = (
        f"{timeline.model} on {timeline.hardware}: an iteration of {timeline.makespan * 1e3:.4g} ms"
    )
    figure.suptitle(title + hidden + failed, x=0.01, ha="left", fontsize=11)
    return figure


def gantt_rows(timeline: Timeline) -> list[GanttRow]:
    """Return the rows: engines, device by device, then links with traffic, shared when many."""
    engines = {i: t for i, t in enumerate(timeline.tracks) if t.to is None}
    links = {i: t for i, t in enumerate(timeline.tracks) if t.to is not None}
    several = len(set(timeline.device_kinds)) > 1
    kind = [f" ({each})" if several else "" for each in timeline.device_kinds]
    single = [
        GanttRow(f"device {t.device}{kind[t.device]} {t.name}", (i,)) for i, t in engines.items()
    ]
    wires = [GanttRow(f"link {t.name}", (i,)) for i, t in links.items()]
    if len(single) + len(wires) > MOST_ROWS:
        wires = _shared(links, "device {} sends")
    if len(single) + len(wires) > MOST_ROWS:
        single = _shared(engines, "device {}", kind)
    if len(single) + len(wires) > MOST_ROWS:
        busy = {piece.track for piece in timeline.slices}
        single = [row for row in single if busy.intersection(row.tracks)]
    return single + wires


def _shared(tracks: dict, label: str, kind: Sequence[str] = ()) -> list[GanttRow]:
    """A row a device for all its tracks; ``kind`` [D] is said of it."""
    devices: dict[int, list[int]] = {}
    for i, track in tracks.items():
        devices.setdefault(track.device, []).append(i)
    said = {d: kind[d] if kind else "" for d in devices}
    return [GanttRow(label.format(d) + said[d], tuple(own)) for d, own in devices.items()]


def _kind_of(piece: Slice) -> str:
    return piece.args["kind"] if piece.args["kind"] in KIND_COLOURS else "other"


def _boxes(timeline: Timeline, rows: Sequence[GanttRow], kinds: Sequence[str]) -> list[Boxes]:
    number = {kind: i for i, kind in enumerate(KIND_COLOURS)}
    track = np.array([s.track for s in timeline.slices], np.int64)
    colour = np.array([number[kind] for kind in kinds], np.int64)
    start = np.array([s.start for s in timeline.slices])
    seconds = np.array([s.seconds for s in timeline.slices])
    grid = np.linspace(0.0, max(timeline.makespan, 1e-300), COLUMNS + 1)
    found = []
    for row in rows:
        taken = np.zeros((len(number), COLUMNS))
        for place in row.tracks:
            for c in np.unique(colour[track == place]).tolist():
                mine = (track == place) & (colour == c)
                taken[c] += _time_in_columns(start[mine], seconds[mine], grid)
        found.append(_row_boxes(taken, len(row.tracks) * grid[1]))
    return found


def _time_in_columns(
    start: Float64[np.ndarray, "X"],
    seconds: Float64[np.ndarray, "X"],
    grid: Float64[np.ndarray, "G"],
) -> Float64[np.ndarray, "Y"]:
    """Busy seconds between grid points, of slices in order of which none overlap."""
    moments = np.stack([start, start + seconds], axis=1).ravel()
    so_far = np.stack([np.zeros(len(start)), seconds], axis=1).ravel().cumsum()
    return np.diff(np.interp(grid, moments, so_far))


def _row_boxes(taken: Float64[np.ndarray, "colours columns"], column: float) -> Boxes:
    share = taken.sum(axis=0) / column
    shade = np.clip(np.ceil(share * SHADES - 1e-6), 0, SHADES).astype(np.int64)
    look = np.where(shade > 0, taken.argmax(axis=0) * (SHADES + 1) + shade, 0)
    change = np.flatnonzero(np.diff(look)) + 1
    start, end = np.r_[0, change], np.r_[change, len(look)]
    drawn = look[start] > 0
    colour, shade = np.divmod(look[start][drawn], SHADES + 1)
    return Boxes(start[drawn], end[drawn], colour, shade, float(share.mean()))


def _draw(axes: Axes, rows: Sequence[Boxes], colours: Sequence[str], column: float) -> None:
    from matplotlib.colors import to_rgb

    full = np.array([to_rgb(colour) for colour in colours])
    many = sum(len(boxes.start) for boxes in rows) > MOST_BOXES
    for y, boxes in enumerate(rows):
        strength = boxes.shade[:, None] / SHADES
        paint = full[boxes.colour] * strength + (1.0 - strength)
        start, width = boxes.start * column, (boxes.end - boxes.start) * column
        spans = list(zip(start.tolist(), width.tolist(), strict=True))
        axes.broken_barh(spans, (y - 0.4, 0.8), facecolors=paint, linewidth=0, rasterized=many)


def _legend(figure: Figure, rows: Sequence[Boxes]) -> None:
    from matplotlib.patches import Patch

    used = {int(c) for boxes in rows for c in boxes.colour}
    named = enumerate(KIND_COLOURS.items())
    handles = [Patch(color=colour, label=kind) for i, (kind, colour) in named if i in used]
    if handles:
        figure.legend(handles=handles, loc="outside right upper", frameon=False, fontsize=9)


def _font(rows: int) -> float:
    return 9.0 if rows <= MOST_ROWS else 7.0
