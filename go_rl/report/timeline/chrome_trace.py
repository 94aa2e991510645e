"""A timeline as Chrome trace events, the JSON that Perfetto and ``chrome://tracing`` open.

Format: "Trace Event Format" (Google, 2016). One process a device, one thread an engine; the links
are a process of their own. Times are in microseconds.
"""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from go_rl.core import PlanError
from go_rl.core.files.whole_file import write_text, writing
from go_rl.objectives.makespan.simulate.timeline import Timeline

TICKS = 1024.0
"""Times are whole multiples of 1 / `TICKS` us, so that sums of them are exact in binary and stay
apart when a viewer cuts them down to nanoseconds."""
NEAR = 4
"""Ticks before the end of a slice at which an arrow leaves it: inside in whole nanoseconds too."""
LEAST = 2
"""Ticks of a slice that lasts a nanosecond in every viewer."""
LINKS = "links"
"""Name of the process of the links."""

Event = dict[str, Any]


def save_chrome_trace(timeline: Timeline, path: str | Path) -> None:
    """Write the trace to a file, aside first; equal timelines give equal files.

    Raises:
        PlanError: it cannot be written.
    """
    text = json.dumps(chrome_trace(timeline), allow_nan=False, separators=(",", ":"))
    with writing(path, PlanError):
        write_text(Path(path), text + "\n")


def chrome_trace(timeline: Timeline) -> dict[str, Any]:
    """Return the trace: names, a complete event a slice, memory counters, and arrows from kernels
    to transfers to kernels."""
    ticks = _ticks(timeline)
    return {
        "displayTimeUnit": "ms",
        "otherData": {
            "model": timeline.model,
            "hardware": timeline.hardware,
            "makespan_seconds": timeline.makespan,
            "status": str(timeline.status),
        },
        "traceEvents": [
            *_names(timeline),
            *_slices(timeline, ticks),
            *_memory(timeline),
            *_arrows(timeline, ticks),
        ],
    }


def _ticks(timeline: Timeline) -> list[tuple[int, int]]:
    """Start and end of every slice; none ends after the next on its track starts."""
    scale = TICKS * 1e6
    starts = [round(s.start * scale) for s in timeline.slices]
    ends = [round((s.start + s.seconds) * scale) for s in timeline.slices]
    by_track: dict[int, list[int]] = {}
    for i, piece in enumerate(timeline.slices):
        by_track.setdefault(piece.track, []).append(i)
    for pieces in by_track.values():
        for i, after in pairwise(pieces):
            ends[i] = min(ends[i], starts[after])
    return list(zip(starts, ends, strict=True))


def _place(timeline: Timeline, track: int) -> Event:
    """Process and thread of a track."""
    entry = timeline.tracks[track]
    pid = entry.device if entry.to is None else len(timeline.device_kinds)
    return {"pid": pid, "tid": track + 1}


def _names(timeline: Timeline) -> list[Event]:
    devices = [f"device {d} ({kind})" for d, kind in enumerate(timeline.device_kinds)]
    links = [LINKS] if any(t.to is not None for t in timeline.tracks) else []
    events = []
    for pid, name in enumerate([*devices, *links]):
        events += [_named("process_name", {"pid": pid}, name=name),
                   _named("process_sort_index", {"pid": pid}, sort_index=pid)]  # fmt: skip
    for i, track in enumerate(timeline.tracks):
        place = _place(timeline, i)
        events += [_named("thread_name", place, name=track.name),
                   _named("thread_sort_index", place, sort_index=i)]  # fmt: skip
    return events


def _named(what: str, place: Event, **args: Any) -> Event:
    return {"ph": "M", "name": what, **place, "args": args}


def _slices(timeline: Timeline, ticks: list[tuple[int, int]]) -> list[Event]:
    return [
        {
            "ph": "X",
            "name": piece.name,
            "cat": f"{piece.args['kind']}{',backward' if piece.args['backward'] else ''}",
            **_place(timeline, piece.track),
            "ts": start / TICKS,
            "dur": (end - start) / TICKS,
            "args": dict(piece.args),
        }
        for piece, (start, end) in zip(timeline.slices, ticks, strict=True)
    ]


def _memory(timeline: Timeline) -> list[Event]:
    events = []
    for device, use in enumerate(timeline.memory):
        moments = np.rint(use.seconds * (1e6 * TICKS)) / TICKS
        for moment, size in zip(moments.tolist(), use.bytes.tolist(), strict=True):
            events.append({"ph": "C", "name": "memory", "pid": device, "ts": moment,
                           "args": {"bytes": size}})  # fmt: skip
    return events


def _arrows(timeline: Timeline, ticks: list[tuple[int, int]]) -> list[Event]:
    """Flow events; each end lies within its slice, which shorter ones than `LEAST` cannot offer."""
    events = []
    for number, (source, target) in enumerate(timeline.flows):
        if any(end - start < LEAST for start, end in (ticks[source], ticks[target])):
            continue
        start, end = ticks[source]
        for ph, i, moment in (
            ("s", source, max(start, end - NEAR)),
            ("f", target, ticks[target][0]),
        ):
            events.append({"ph": ph, "name": "tensor", "cat": "tensor", "id": number,
                           **_place(timeline, timeline.slices[i].track), "ts": moment / TICKS,
                           **({"bp": "e"} if ph == "f" else {})})  # fmt: skip
    return events
