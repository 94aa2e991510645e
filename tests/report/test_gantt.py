"""The picture of an iteration: boxes where slices are, for one node and for tens of thousands."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from timelines import one_node, zoo_timeline

from go_rl.core import Status, load_hardware
from go_rl.objectives.makespan.simulate.timeline import TRANSFER, MemoryUse, Slice, Timeline, Track
from go_rl.report.timeline.gantt import COLUMNS, MOST_ROWS, gantt_figure, gantt_rows, save_gantt

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


def labels(figure):
    return [text.get_text() for text in figure.axes[0].get_yticklabels()]


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


def test_slices_smaller_than_a_column_merge_and_fade():
    """Sixteen thousand slices are one box; where a quarter of the time is busy, a pale one."""
    count, width = 10 * COLUMNS, 8e-3 / (10 * COLUMNS)
    full = gantt_figure(timeline([piece(i * width, width) for i in range(count)]))
    sparse = gantt_figure(timeline([piece(i * width, width / 4) for i in range(count)]))
    (box,), (faint,) = boxes(full), boxes(sparse)
    assert box[:2] == faint[:2] == pytest.approx((0, 8))
    np.testing.assert_allclose(faint[2], 1 - (1 - np.array(box[2])) / 4, atol=2e-3)
    assert (texts(full)[1], texts(sparse)[1]) == ("100%", "25%")


def test_a_column_has_the_colour_of_what_takes_most_of_it():
    width = 8e-3 / COLUMNS
    mixed = [piece(0.0, 0.6 * width, kind="gather"), piece(0.6 * width, 0.4 * width)]
    alone = [piece(0.0, width, kind="gather")]
    assert boxes(gantt_figure(timeline(mixed))) == boxes(gantt_figure(timeline(alone)))


def test_colours_by_pass():
    tracks = (Track(0, "stream"), Track(0, "0 → 1", 1), Track(1, "stream"))
    slices = [piece(0.0, 1e-3), piece(1e-3, 1e-3, 1, TRANSFER), piece(2e-3, 6e-3, 2, backward=True)]
    figure = gantt_figure(timeline(slices, tracks), "pass")
    assert legend(figure) == ["forward", "backward", "transfer"]
    assert labels(figure) == ["device 0 stream", "device 1 stream", "link 0 → 1"]


def test_many_links_share_the_row_of_their_sender():
    engines = [Track(d, "stream") for d in range(8)]
    links = [Track(a, f"{a} → {b}", b) for a in range(8) for b in range(8) if a != b]
    step = timeline([piece(0.0, 8e-3, 8, TRANSFER)], [*engines, *links])
    shared = gantt_rows(step)
    assert [row.label for row in shared[8:]] == [f"device {d} sends" for d in range(8)]
    assert [len(row.tracks) for row in shared] == [1] * 8 + [7] * 8
    assert texts(gantt_figure(step))[9] == "14%"  # one link of seven


@pytest.mark.parametrize("hardware", ["p100x1", "p100x4"])
def test_one_node(hardware):
    figure = gantt_figure(one_node(load_hardware(hardware)))
    figure.canvas.draw()
    assert len(labels(figure)) == int(hardware[-1])
    ((left, right, _),) = boxes(figure)
    assert (left, right) == pytest.approx((0, figure.axes[0].get_xlim()[1]))


def test_a_failure_is_in_the_title():
    failed = replace(timeline([piece(0.0, 8e-3)]), status=Status.OUT_OF_MEMORY)
    assert gantt_figure(failed).get_suptitle().endswith("A device needs more memory than it has.")


def test_no_text_lies_on_another():
    for hardware in ("p100x2", "p100x16"):
        figure = gantt_figure(zoo_timeline("ncf", hardware, fused=False))
        figure.canvas.draw()
        boxes = [t.get_window_extent() for t in figure.axes[0].get_yticklabels()]
        assert all(a.y0 >= b.y1 for a, b in pairwise(boxes))
        shares = [t.get_window_extent() for t in figure.axes[0].texts]
        assert all(a.y0 >= b.y1 for a, b in pairwise(shares))
        assert max(s.x1 for s in shares) <= figure.legends[0].get_window_extent().x0


def test_equal_timelines_give_equal_files(tmp_path):
    step = zoo_timeline("transformer-xl-2-layers-training", "p100x2")
    for folder in ("first", "second"):
        save_gantt(step, tmp_path / folder / "gantt")
    for name in ("gantt.svg", "gantt.png"):
        assert (tmp_path / "first" / name).read_bytes() == (tmp_path / "second" / name).read_bytes()


def test_kinds_of_unlike_devices_are_named():
    tracks = (Track(0, "stream"), Track(1, "stream"))
    mixed = replace(timeline([piece(0.0, 1e-3)], tracks), device_kinds=("v100", "p4"))
    assert [row.label for row in gantt_rows(mixed)] == [
        "device 0 (v100) stream", "device 1 (p4) stream",
    ]  # fmt: skip
    alike = replace(mixed, device_kinds=("p4", "p4"))
    assert [row.label for row in gantt_rows(alike)] == ["device 0 stream", "device 1 stream"]


def test_of_many_devices_only_the_busy_ones_are_shown():
    tracks = [Track(d, "stream") for d in range(MOST_ROWS + 1)]
    figure = gantt_figure(timeline([piece(0.0, 2e-3, 7), piece(0.0, 1e-3, 9)], tracks))
    assert labels(figure) == ["device 7", "device 9"]
    assert figure.get_suptitle().endswith(f"8 ms · {MOST_ROWS - 1} idle devices not shown")
