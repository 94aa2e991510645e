"""`slack_of`: how much longer each operator of a plan could take before the iteration does."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from jaxtyping import Float64

from go_rl.core import Plan, Problem
from go_rl.objectives.makespan.simulate.timeline import TRANSFER, Timeline


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
