"""Timelines, and what bounds them."""

import json
from collections import defaultdict
from itertools import pairwise
from math import floor

import numpy as np
import pytest
from small_graphs import row_of
from timelines import zoo_timeline

from go_rl.core import Evaluation, Objective, OpKind, Plan, Problem, Status, load_hardware, plan_for
from go_rl.costs.models import ProblemOptions, make_problem
from go_rl.graphs.readers.graph_builder import Node
from go_rl.objectives.makespan.simulate.timeline import MemoryUse, Slice, Timeline, Track
from go_rl.report.bottleneck import bottleneck
from go_rl.report.timeline.chrome_trace import save_chrome_trace
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


def chain(objective: Objective, hardware: str) -> Problem:
    """x → a (3 GFLOP, 40 kB) → b (1 GFLOP, 8 kB)."""
    a = Node("a", "MatMul", OpKind.MATMUL, flops=3e9, output_bytes=4e4)
    b = Node("b", "Conv", OpKind.MATMUL, flops=1e9, output_bytes=8e3)
    graph = row_of([a, b], 4e4)
    return make_problem(graph, load_hardware(hardware), ProblemOptions(objective))


def planned(problem: Problem, device: list[int], seconds: float, loads, links) -> Plan:
    work, traffic = np.array(loads), np.array(links)
    evaluation = Evaluation(Status.OK, seconds, work, traffic, 0 * traffic, *([0 * work] * 3))
    return plan_for(problem, device=np.array(device, np.int16), evaluation=evaluation, bound=0.0,
                    optimizer="dp", seed=0, samples=1, wall_seconds=0.0, replicas={})  # fmt: skip


def test_a_chip_with_its_operators():
    problem = chain(Objective.RING, "ring2")
    found = bottleneck(problem, planned(problem, [0, 0], 4.0, [4.0, 0.0], [0.0, 0.0]))
    assert found is not None
    total = problem.seconds[0].sum()
    assert (found.what, found.share, found.longest) == ("chip 0", 1.0, "a")
    assert found.amount == pytest.approx(problem.seconds[0, 0] / total)
    assert [name for name, _ in found.operators] == ["MatMul", "Conv"]
    assert found.sentence.startswith("busiest: chip 0, 100 % of the iteration: 7")
    assert found.sentence.endswith(" % Conv; longest operator a, 75 %")


def test_a_link_with_its_largest_tensor():
    problem = chain(Objective.RING, "ring2")
    found = bottleneck(problem, planned(problem, [0, 1], 5.0, [3.0, 1.0], [5.0, 0.0]))
    assert found is not None
    assert found.sentence == (
        "busiest: link 0 → 1, 100 % of the iteration; largest tensor there: a, 40 kB"
    )
    assert found.to_json()["longest"] == "a"


TRAINING = "transformer-xl-2-layers-training"


@pytest.fixture(scope="module")
def traced():
    return zoo_timeline(TRAINING, "p100x4")


@pytest.fixture(scope="module")
def trace(traced, tmp_path_factory):
    path = tmp_path_factory.mktemp("trace") / "new" / "trace.json"
    save_chrome_trace(traced, path)
    return json.loads(path.read_text(encoding="utf-8"))


def of(trace, ph):
    return [e for e in trace["traceEvents"] if e["ph"] == ph]


def by_track(trace):
    tracks = defaultdict(list)
    for event in of(trace, "X"):
        tracks[event["pid"], event["tid"]].append(event)
    return {place: sorted(found, key=lambda e: e["ts"]) for place, found in tracks.items()}


def nanoseconds(event):
    """Start and end as Perfetto reads them: both times are cut down to whole nanoseconds."""
    start = floor(event["ts"] * 1000)
    return start, start + floor(event["dur"] * 1000)


def test_no_two_slices_of_a_track_overlap(trace):
    for events in by_track(trace).values():
        assert all(a["ts"] + a["dur"] <= b["ts"] for a, b in pairwise(events))
        assert all(nanoseconds(a)[1] <= nanoseconds(b)[0] for a, b in pairwise(events))


def test_every_kernel_and_transfer_is_there(trace, traced):
    shown = sorted((e["name"], e["args"]["nodes"], round(e["ts"], 2)) for e in of(trace, "X"))
    wanted = sorted((s.name, s.args["nodes"], round(s.start * 1e6, 2)) for s in traced.slices)
    assert [x[:2] for x in shown] == [x[:2] for x in wanted]
    assert [x[2] for x in shown] == pytest.approx([x[2] for x in wanted], abs=0.02)


def test_arrows_start_and_end_inside_slices(trace, traced):
    tracks = by_track(trace)
    start, finish = ({e["id"]: e for e in of(trace, ph)} for ph in "sf")
    assert start.keys() == finish.keys()
    lasting = {n for n, pair in enumerate(traced.flows)
               if min(traced.slices[i].seconds for i in pair) > 3e-9}  # fmt: skip
    assert lasting <= start.keys()
    assert len(lasting) > 0.9 * len(traced.flows)
    for arrows, wanted in ((start, 0), (finish, 1)):
        for number, arrow in arrows.items():
            moment = floor(arrow["ts"] * 1000)
            around = [
                e for e in tracks[arrow["pid"], arrow["tid"]]
                if nanoseconds(e)[0] <= moment < nanoseconds(e)[1]
            ]  # fmt: skip
            assert [e["name"] for e in around] == [traced.slices[traced.flows[number][wanted]].name]
    assert all(start[n]["ts"] <= finish[n]["ts"] for n in start)
