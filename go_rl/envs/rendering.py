"""`rendered`: an episode as a picture or as text: the graph with what was decided so far, and the
load of each device."""

from __future__ import annotations

from colorsys import hsv_to_rgb
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import matplotlib as mpl
import numpy as np
from jaxtyping import Bool, Float64, Int64, UInt8
from PIL import Image, ImageDraw, ImageFont

from go_rl.core import EnvironmentUseError
from go_rl.core.errors import nearest
from go_rl.core.layered_drawing import Arrangement
from go_rl.core.printable import name_line
from go_rl.core.unit_text import seconds_text
from go_rl.envs.case import NODE_SIDE
from go_rl.envs.episode import Episode
from go_rl.envs.observation import NO_NODE, EpisodeProgress

RENDER_MODES = ("ansi", "rgb_array")
"""Text of a few lines, or a picture of `PICTURE_SIZE`."""
RENDER_FPS = 10
"""Frames a second of a film."""
PICTURE_SIZE = (800, 600)
"""Width and height in pixels."""
DRAWN_SIZE = (2 * PICTURE_SIZE[0], 2 * PICTURE_SIZE[1])
"""Size that is drawn and then halved, which smooths lines."""
GRAPH_BOX = (40, 110, 1560, 860)
"""Left, upper, right and lower edge of the graph."""
LOADS_BOX = (40, 930, 1560, 1140)
"""Box of the bars, whose height is a device's seconds (left, top, right, bottom)."""
FONT_PIXELS = 25
LARGEST_MARK = 18.0
"""Half the side of a node's square, at most."""
BAR = 30
"""Characters of the longest bar of the text."""
LONGEST_NAME = 40
"""Characters of a name."""
GREY, LIGHT, BLACK, WHITE = (130, 130, 130), (205, 205, 205), (0, 0, 0), (255, 255, 255)
Colour = tuple[int, int, int]


@dataclass(frozen=True, eq=False)
class Shown:
    """State of an episode as both forms show it."""

    progress: EpisodeProgress
    open: Bool[np.ndarray, "N"]
    """[N] nodes that still wait for a decision."""
    loads: Float64[np.ndarray, "D"]
    """[D] seconds of the nodes that were put on each device."""
    counts: Int64[np.ndarray, "D"]
    """[D] number of those nodes."""
    title: str
    """Graph, hardware and how far the episode is."""


def check_render_mode(mode: str | None) -> None:
    """Raise an `EnvironmentUseError` for an unknown mode; None is no rendering."""
    if mode is not None and mode not in RENDER_MODES:
        raise EnvironmentUseError(
            f"unknown render_mode {mode!r}{nearest(str(mode), RENDER_MODES)} "
            f"Use one of {list(RENDER_MODES)}"
        )


def rendered(mode: str | None, episode: Episode) -> str | UInt8[np.ndarray, "H W 3"]:
    """Return an episode as ``mode`` has it.

    Raises:
        EnvironmentUseError: the environment was made without a mode, or no episode has begun.
    """
    if mode is None:
        raise EnvironmentUseError(
            f"render() needs an environment made with render_mode=, one of {list(RENDER_MODES)}"
        )
    if not episode.has_begun:
        raise EnvironmentUseError("no episode has begun; call reset() before render()")
    state = shown(episode)
    return text(state) if mode == "ansi" else picture(state, episode)


def shown(episode: Episode) -> Shown:
    """Return what there is to show of an episode."""
    problem, progress = episode.case.problem, episode.progress()
    device = progress.device
    placed = device >= 0
    on = device[placed].astype(np.int64)
    seconds = problem.seconds[problem.device_kind[on], np.flatnonzero(placed)]
    devices, name = problem.hardware.num_devices, name_line(problem.graph.name, LONGEST_NAME)
    return Shown(
        progress=progress,
        open=episode.open,
        loads=np.bincount(on, seconds, devices).astype(np.float64),
        counts=np.bincount(on, minlength=devices),
        title=f"{name} on {problem.hardware.name}: {_stage(episode)}",
    )


def _stage(episode: Episode) -> str:
    """How far the episode is, in words."""
    if (result := episode.result) is not None:
        if not result.status.ok:
            return f"{result.status}: {name_line(result.detail, 2 * LONGEST_NAME)}"
        times = result.reference_seconds / result.seconds
        return f"{seconds_text(result.seconds)}, {times:.3g} times as fast as the reference plan"
    if episode.current == NO_NODE:
        return "nothing decided yet"
    name = name_line(str(episode.case.problem.graph.names[episode.current]), LONGEST_NAME)
    return f"next is node {episode.current}, {name}"


def text(state: Shown) -> str:
    """Return an episode as lines: the title, then a bar, nodes and seconds of each device."""
    lines, left, shares = [state.title], int(state.open.sum()), bar_shares(state.loads)
    for d, (load, count) in enumerate(zip(state.loads, state.counts, strict=True)):
        bar = "#" * round(BAR * float(shares[d]))
        lines.append(f"{d:4} {bar:{BAR}} {count:6} nodes {seconds_text(float(load)):>10}")
    return "\n".join([*lines, f"open: {left} of {len(state.open)} nodes"])


def bar_shares(loads: Float64[np.ndarray, "D"]) -> Float64[np.ndarray, "D"]:
    """Return [D] length of each device's bar over the longest one's; beside a load of inf, of a
    device that cannot run one of its nodes, finite loads have none."""
    longest = float(loads.max())
    if np.isinf(longest):
        return np.isinf(loads).astype(np.float64)
    return loads / max(longest, np.finfo(np.float64).tiny)


def picture(state: Shown, episode: Episode) -> UInt8[np.ndarray, "H W 3"]:
    """Return [H, W, 3] the graph, a square a node in the colour of its device, hollow while it is
    open and framed where it is next; below it the seconds of each device as bars."""
    image = Image.new("RGB", DRAWN_SIZE, WHITE)
    pen = ImageDraw.Draw(image)
    pen.text((40, 30), state.title, BLACK, font())
    _draw_graph(pen, state, episode)
    _draw_loads(pen, state)
    return np.asarray(image.resize(PICTURE_SIZE, Image.Resampling.BOX))


def _draw_graph(pen: ImageDraw.ImageDraw, state: Shown, episode: Episode) -> None:
    graph, arrangement = episode.case.problem.graph, episode.case.arrangement
    places, half = _places(arrangement)
    for u, v in zip(graph.senders.tolist(), graph.receivers.tolist(), strict=True):
        pen.line([*places[u], *places[v]], LIGHT, 2)
    colours = device_colours(len(state.loads))
    for node, (x, y) in enumerate(places):
        box = (x - half, y - half, x + half, y + half)
        device = int(state.progress.device[node])
        fill = colours[device] if device >= 0 and not state.open[node] else WHITE
        pen.rectangle(box, fill, colours[device] if device >= 0 else GREY, 2)
    if (node := state.progress.current) != NO_NODE:
        x, y = places[node]
        wide = half + 6
        pen.rectangle((x - wide, y - wide, x + wide, y + wide), None, BLACK, 5)


def _places(arrangement: Arrangement) -> tuple[list[tuple[float, float]], float]:
    """Return the middle of each node's square within `GRAPH_BOX`, and half its side."""
    left, upper, right, lower = GRAPH_BOX
    wide, high = arrangement.size
    scale = min((right - left) / wide, (lower - upper) / high, 2 * LARGEST_MARK / NODE_SIDE)
    half = max(scale * NODE_SIDE / 2, 2.0)
    x0, y0 = (left + right - scale * wide) / 2 + half, (upper + lower - scale * high) / 2 + half
    return [(x0 + scale * x, y0 + scale * y) for x, y in arrangement.corner], half


def _draw_loads(pen: ImageDraw.ImageDraw, state: Shown) -> None:
    left, upper, right, lower = LOADS_BOX
    shares, devices = bar_shares(state.loads), len(state.loads)
    said = f"seconds of each device, the highest {seconds_text(float(state.loads.max()))}"
    pen.text((left, upper - 50), said, BLACK, font())
    width = (right - left) / devices
    for d, colour in enumerate(device_colours(devices)):
        x = left + d * width
        height = (lower - upper) * float(shares[d])
        pen.rectangle((x, lower - height, x + 0.8 * width, lower), colour)
        if width >= FONT_PIXELS:
            pen.text((x, lower + 10), str(d), BLACK, font())


@cache
def font() -> ImageFont.FreeTypeFont:
    """Return the font that Matplotlib brings along, which has the characters of units."""
    path = Path(mpl.get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf"
    return ImageFont.truetype(path, FONT_PIXELS)


def device_colours(devices: int) -> list[Colour]:
    """Return a colour for each device: around the circle of hues, neighbours light and dark."""
    found = [hsv_to_rgb(d / devices, 0.75, (0.9, 0.65)[d % 2]) for d in range(devices)]
    return [(int(255 * r), int(255 * g), int(255 * b)) for r, g, b in found]
