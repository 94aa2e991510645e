"""Cutting a placed graph into segments: nodes of one device that can run as one program.

A node's *level* is the largest number of changes of device on any path that leads to it. The nodes
of one device and level form a segment. Data only flows from lower levels to higher ones, so
segments do not wait for each other in circles, and segments of one level run side by side.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

import numpy as np
from jaxtyping import Int, Int64

from go_rl.core import OpGraph, PlanError
from go_rl.core.graph.op_kind import IS_FREE


@dataclass(frozen=True, eq=False)
class Segments:
    """``N`` nodes in ``S`` segments, numbered in an order in which they can run."""

    segment: Int64[np.ndarray, "N"]
    """[N] of each node; of an input or constant the first that reads it."""
    device: Int64[np.ndarray, "S"]
    """[S] device of the plan."""
    copies: Mapping[int, tuple[int, ...]]
    """Further segments that recompute a constant, by node."""


def cut_segments(
    graph: OpGraph, device: Int[np.ndarray, "N"], leader: Int[np.ndarray, "N"] | None = None
) -> Segments:
    """Return the segments of a placement.

    Inputs and constants are on every device that reads them, as in the makespan objective.

    Args:
        device: [N] of each node.
        leader: [N] nodes with equal numbers are one kernel and stay in one segment; None: each
            node is its own.

    Raises:
        PlanError: a kernel has nodes on two devices, or kernels wait for each other.
    """
    unit = np.arange(graph.num_nodes)
    if leader is not None:
        _, first, which = np.unique(leader, return_index=True, return_inverse=True)
        unit = first[which]
    home = device.astype(np.int64)
    if (split := np.flatnonzero(home[unit] != home)).size:
        node = int(split[0])
        raise PlanError(
            f"{graph.name}: node {graph.names[node]!r} is on device {home[node]}, its kernel on "
            f"device {home[unit[node]]}"
        )
    free = IS_FREE[graph.kind]
    free &= np.bincount(graph.senders, minlength=graph.num_nodes) > 0
    level = _levels(graph, home, unit, free)
    own = np.flatnonzero(~free)
    pairs, number = np.unique(np.stack([level[own], home[own]]), axis=1, return_inverse=True)
    segment = np.zeros(graph.num_nodes, np.int64)
    segment[own] = number.ravel()
    copies = {}
    for node, readers in _readers(graph, free, segment).items():
        segment[node], *others = readers
        copies[node] = tuple(others)
    return Segments(segment, pairs[1], {n: s for n, s in copies.items() if s})


def _levels(
    graph: OpGraph, home: Int64[np.ndarray, "N"], unit: Int64[np.ndarray, "N"], free: np.ndarray
) -> Int64[np.ndarray, "N"]:
    """[N] level of each node, equal within a kernel."""
    counts = ~free[graph.senders] & (unit[graph.senders] != unit[graph.receivers])
    before: dict[int, set[int]] = {int(u): set() for u in unit}
    edges = zip(unit[graph.senders[counts]], unit[graph.receivers[counts]], strict=True)
    for u, v in edges:
        before[int(v)].add(int(u))
    level = np.zeros(graph.num_nodes, np.int64)
    try:
        for v in TopologicalSorter(before).static_order():
            steps = [level[u] + (home[u] != home[v]) for u in before[v]]
            level[v] = max(steps, default=0)
    except CycleError as error:
        names = " -> ".join(repr(graph.names[node]) for node in error.args[1])
        raise PlanError(f"{graph.name}: kernels wait for each other: those of {names}") from error
    return level[unit]


def _readers(
    graph: OpGraph, free: np.ndarray, segment: Int64[np.ndarray, "N"]
) -> dict[int, list[int]]:
    """Indices of the segments that read each input and constant, ascending."""
    found: dict[int, set[int]] = defaultdict(set)
    for u, v in zip(graph.senders.tolist(), graph.receivers.tolist(), strict=True):
        if free[u]:
            found[u].add(int(segment[v]))
    return {node: sorted(readers) for node, readers in found.items()}
