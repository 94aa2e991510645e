"""A proven lower bound on the makespan of any plan: the longest path, and the mean load.

Both count what kernels take at least, however nodes are fused
(`go_rl.costs.models.fusion_lower_bound`), on the fastest device, and no transfers. Kernels do not
wait for each other, so a path that has left a kernel never comes back to it: on each of its edges
that cannot lie inside a kernel another one starts, after the one before has ended.
"""

from __future__ import annotations

from typing import no_type_check

import numpy as np
from jaxtyping import Float64, Int16
from numba import njit

from go_rl.core import FREE, Problem
from go_rl.costs.models.fusion_lower_bound import FusionLowerBound, fusion_lower_bound
from go_rl.objectives.makespan.simulate.replay_arrays import ReplayArrays


def makespan_bound(problem: Problem, a: ReplayArrays, pinned: Int16[np.ndarray, "N"]) -> float:
    """Return seconds that no plan goes below; 0 where a node can run nowhere.

    Args:
        problem: with the objective makespan.
        a: the same as arrays.
        pinned: [N] device that each node must have, or `FREE`.
    """
    floor = fusion_lower_bound(problem)
    if floor is None:
        return 0.0
    return max(_longest_path(problem, a, floor), floor.total / _engines(problem, a, pinned))


def _longest_path(problem: Problem, a: ReplayArrays, floor: FusionLowerBound) -> float:
    graph = problem.graph
    parts = np.where(a.split, a.engines, 1)[a.pool].max(axis=0)[graph.kind]
    # A kernel goes to the engines of one of its nodes, and has the largest of their gaps.
    cut = _over_components(floor, np.maximum, parts.astype(np.float64), 1.0)
    gap = _over_components(floor, np.minimum, np.where(a.fed, 0.0, a.gap), np.inf)
    enter = floor.start / cut + gap
    tail = longest_tails(
        graph.num_nodes, graph.senders.astype(np.int64), graph.receivers.astype(np.int64),
        floor.seconds / cut, np.where(floor.inner, 0.0, enter[graph.receivers]),
    )  # fmt: skip
    return float((enter + tail).max(initial=0.0))


def _over_components(
    floor: FusionLowerBound, extreme: np.ufunc, values: Float64[np.ndarray, "N"], first: float
) -> Float64[np.ndarray, "N"]:
    """[N] the largest or smallest value of each node's component."""
    found = np.full(int(floor.component.max(initial=0)) + 1, first)
    extreme.at(found, floor.component, values)
    return found[floor.component]


def _engines(problem: Problem, a: ReplayArrays, pinned: Int16[np.ndarray, "N"]) -> int:
    """Engines of all devices that some node may have."""
    devices = problem.hardware.devices
    held = pinned[~a.fed]
    used = range(len(devices)) if (held == FREE).any() or not held.size else np.unique(held)
    return sum(engine.count for d in used for engine in devices[d].engine_list)


@njit(cache=True, nogil=True)
@no_type_check
def longest_tails(nodes, senders, receivers, seconds, between):
    """Return [N] seconds of the longest path from the start of each node to the end of the last.

    Args:
        nodes: N; every edge goes from a lower to a higher one.
        senders: [E] in any order.
        receivers: [E].
        seconds: [N] of each node.
        between: [E] seconds between the end of the sender and the start of the receiver.
    """
    edges = len(senders)
    head, after = np.full(nodes, -1), np.full(edges, -1)
    for e in range(edges):
        after[e], head[senders[e]] = head[senders[e]], e
    tail = np.zeros(nodes)
    for i in range(nodes):
        n = nodes - 1 - i
        longest = 0.0
        e = head[n]
        while e >= 0:
            longest = max(longest, between[e] + tail[receivers[e]])
            e = after[e]
        tail[n] = seconds[n] + longest
    return tail
