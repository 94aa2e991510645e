"""The picture of an iteration: boxes where slices are, for one node and for tens of thousands."""

from itertools import pairwise

import numpy as np
import pytest
from timelines import zoo_timeline

from go_rl.core import Status
from go_rl.objectives.makespan.simulate.timeline import MemoryUse, Slice, Timeline, Track
from go_rl.report.timeline.gantt import gantt_figure

STREAM = (Track(0, "stream"),)


def timeline(slices, tracks=STREAM, makespan=8e-3) -> Timeline:
    memory = MemoryUse(np.zeros(1), np.zeros(1))
    devices = 1 + max(track.device for track in tracks)
    return Timeline(
        "net", "toys", Status.OK, makespan, ("toy",) * devices, tuple(tracks), tuple(slices), (),
        (memory,) * devices, np.zeros(devices),
    )  # fmt: skip


def piece(start, seconds, track=0, kind="matmul", backward=False) -> Slice:
    return Slice("n", start, seconds, track, {"kind": kind, "backward": backward, "nodes": ["n"]})


def boxes(figure, row=0):
    """(left, right, colour) of each box of a row, ms."""
    found = []
    for collection in figure.axes[0].collections:
        for path, colour in zip(collection.get_paths(), collection.get_facecolors(), strict=True):
            box = path.get_extents()
            if round((box.y0 + box.y1) / 2) == row:
                found.append((box.x0, box.x1, tuple(np.round(colour[:3], 3))))
    return sorted(found)


def texts(figure):
    return [text.get_text() for text in figure.axes[0].texts]


def legend(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_boxes_lie_where_the_slices_are():
    figure = gantt_figure(timeline([piece(0.0, 2e-3), piece(4e-3, 4e-3, kind="reduction")]))
    (a, b, blue), (c, d, orange) = boxes(figure)
    assert (a, b, c, d) == pytest.approx((0, 2, 4, 8))
    assert blue != orange
    assert legend(figure) == ["matmul", "reduction"]
    assert texts(figure) == ["busy", "75%"]
    assert figure.axes[0].get_xlabel() == "ms"
    assert figure.get_suptitle() == "net on toys: an iteration of 8 ms"


def test_no_text_lies_on_another():
    for hardware in ("p100x2", "p100x16"):
        figure = gantt_figure(zoo_timeline("ncf", hardware, fused=False))
        figure.canvas.draw()
        boxes = [t.get_window_extent() for t in figure.axes[0].get_yticklabels()]
        assert all(a.y0 >= b.y1 for a, b in pairwise(boxes))
        shares = [t.get_window_extent() for t in figure.axes[0].texts]
        assert all(a.y0 >= b.y1 for a, b in pairwise(shares))
        assert max(s.x1 for s in shares) <= figure.legends[0].get_window_extent().x0
