"""`timetable`: rows and bars of one iteration, for the page to draw."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
from jaxtyping import Float64

from go_rl.core import OpGraph, OpKind, Plan, Problem
from go_rl.objectives.makespan.simulate.timeline import TRANSFER, Timeline

TRANSFERS = -1
"""Stands for an operator where a bar is no operator's."""


def timetable(problem: Problem, plan: Plan, timeline: Timeline | None) -> dict[str, Any]:
    """Return ``rows`` (label, device), and of each bar ``row``, ``start`` and ``seconds``, ``node``
    (index, or `TRANSFERS`) and ``kind`` (index in ``kinds``).

    Of a replayed plan: engines and links in time. Of the others: what each device does in an
    iteration, operators one after the other in the order of the graph, then its transfers.
    """
    rows, bars = _replayed(timeline, problem.graph) if timeline else _stacked(problem, plan)
    kinds = [kind.name.lower() for kind in OpKind] + [TRANSFER]
    row, start, seconds, node, kind = zip(*bars, strict=True) if bars else ((),) * 5
    return {
        "rows": rows, "kinds": kinds, "length": plan.value, "inOrder": timeline is not None,
        "row": row, "start": start, "seconds": seconds, "node": node,
        "kind": [kinds.index(name) for name in kind],
    }  # fmt: skip


Rows = list[tuple[str, int]]
Bars = list[tuple[int, float, float, int, str]]


def _replayed(timeline: Timeline, graph: OpGraph) -> tuple[Rows, Bars]:
    rows = [
        (f"link {track.name}" if track.to is not None else f"device {track.device} {track.name}",
         track.device)
        for track in timeline.tracks
    ]  # fmt: skip
    bars = [
        (piece.track, piece.start, piece.seconds, graph.index[piece.args["nodes"][0]],
         piece.args["kind"])
        for piece in timeline.slices
    ]  # fmt: skip
    return rows, bars


def _stacked(problem: Problem, plan: Plan) -> tuple[Rows, Bars]:
    graph, load = problem.graph, plan.evaluation.device_seconds
    word, end = problem.objective.traits.device, np.zeros(len(load))
    copied = [(node, device) for node, devices in plan.replicas.items() for device in devices]
    placed = sorted([*enumerate(plan.device.tolist()), *copied])
    bars: Bars = []
    for node, device in placed:
        seconds = float(problem.seconds[problem.device_kind[device], node])
        if seconds > 0:
            kind = OpKind(int(graph.kind[node])).name.lower()
            bars.append((device, float(end[device]), seconds, node, kind))
            end[device] += seconds
    for device in np.flatnonzero(load > end * (1 + 1e-9)).tolist():
        rest = float(load[device] - end[device])
        bars.append((device, float(end[device]), rest, TRANSFERS, TRANSFER))
    return [(f"{word} {device}", device) for device in range(len(load))], bars


def slack_of(problem: Problem, plan: Plan, timeline: Timeline | None) -> Float64[np.ndarray, "N"]:
    """Return [N] seconds.

    Of a replayed plan: between the end of an operator's kernel and the latest end that delays
    nothing, with devices, order and links as they are; NaN of what runs nowhere. Of the others:
    what the load of the operator's device leaves under the value of the plan.
    """
    if timeline is None:
        load = plan.evaluation.device_seconds
        return np.maximum(plan.value - load[plan.device], 0.0)
    slack = np.full(problem.graph.num_nodes, np.nan)
    index = problem.graph.index
    for piece, free in zip(timeline.slices, _slack_of_slices(timeline), strict=True):
        if piece.args["kind"] != TRANSFER:
            nodes = [index[name] for name in piece.args["nodes"]]
            slack[nodes] = np.fmin(slack[nodes], free)
    return slack


def _slack_of_slices(timeline: Timeline) -> list[float]:
    """Latest ends from the last slice back to the first: a slice must end before the next on its
    track and before those that wait for it."""
    after: dict[int, list[int]] = defaultdict(list)
    for source, target in timeline.flows:
        after[source].append(target)
    following: dict[int, int] = {}
    latest = [0.0] * len(timeline.slices)
    for i in range(len(timeline.slices) - 1, -1, -1):
        piece = timeline.slices[i]
        waiting = after[i] + ([following[piece.track]] if piece.track in following else [])
        limits = [latest[j] - timeline.slices[j].seconds for j in waiting]
        latest[i] = min(limits, default=timeline.makespan)
        following[piece.track] = i
    ends = [piece.start + piece.seconds for piece in timeline.slices]
    return [max(0.0, late - end) for late, end in zip(latest, ends, strict=True)]
