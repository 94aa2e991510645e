"""Chrome traces: valid JSON with every kernel in its place, and nothing on top of another."""

import json
from collections import defaultdict
from itertools import pairwise
from math import floor

import pytest
from timelines import zoo_timeline

from go_rl.report.timeline.chrome_trace import save_chrome_trace

TRAINING = "transformer-xl-2-layers-training"


@pytest.fixture(scope="module")
def timeline():
    return zoo_timeline(TRAINING, "p100x4")


@pytest.fixture(scope="module")
def trace(timeline, tmp_path_factory):
    path = tmp_path_factory.mktemp("trace") / "new" / "trace.json"
    save_chrome_trace(timeline, path)
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


def test_every_kernel_and_transfer_is_there(trace, timeline):
    shown = sorted((e["name"], e["args"]["nodes"], round(e["ts"], 2)) for e in of(trace, "X"))
    wanted = sorted((s.name, s.args["nodes"], round(s.start * 1e6, 2)) for s in timeline.slices)
    assert [x[:2] for x in shown] == [x[:2] for x in wanted]
    assert [x[2] for x in shown] == pytest.approx([x[2] for x in wanted], abs=0.02)


def test_arrows_start_and_end_inside_slices(trace, timeline):
    tracks = by_track(trace)
    start, finish = ({e["id"]: e for e in of(trace, ph)} for ph in "sf")
    assert start.keys() == finish.keys()
    lasting = {n for n, pair in enumerate(timeline.flows)
               if min(timeline.slices[i].seconds for i in pair) > 3e-9}  # fmt: skip
    assert lasting <= start.keys()
    assert len(lasting) > 0.9 * len(timeline.flows)
    for arrows, wanted in ((start, 0), (finish, 1)):
        for number, arrow in arrows.items():
            moment = floor(arrow["ts"] * 1000)
            around = [
                e for e in tracks[arrow["pid"], arrow["tid"]]
                if nanoseconds(e)[0] <= moment < nanoseconds(e)[1]
            ]  # fmt: skip
            assert [e["name"] for e in around] == [
                timeline.slices[timeline.flows[number][wanted]].name
            ]
    assert all(start[n]["ts"] <= finish[n]["ts"] for n in start)
