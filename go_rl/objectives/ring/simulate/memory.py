"""Confirms a ring plan's memory with real offsets, chip by chip."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from jaxtyping import Float64, Int16, Int64

from go_rl.core import Problem, Status
from go_rl.objectives.common.allocator.allocate import Buffers, allocate


def confirm_memory(
    problem: Problem,
    home: Int16[np.ndarray, "N"],
    present: Int64[np.ndarray, "N"],
    seconds: float = 2.0,
) -> tuple[Status, Float64[np.ndarray, "D"]]:
    """Give every tensor of every chip an address range.

    Time is the place in a chip's own order of nodes. Tensors are as in
    `go_rl.objectives.ring.simulate.pricing`; resident weights take the bottom of the memory.

    Args:
        problem: a ring problem with ``memory`` on.
        home, present: [N] home chips and [N] sets of chips, as `RingPricer.place` gives them.
        seconds: limit for each chip's allocator.

    Returns:
        OK, OUT_OF_MEMORY (proved) or GAVE_UP (no offsets found in time), and [D] bytes used.
    """
    chips = problem.hardware.num_devices
    used, worst = np.zeros(chips), Status.OK
    lifetimes = _lifetimes(problem, home, present)
    for c in range(chips):
        weights = _weights(problem, present, c)
        limit = problem.hardware.devices[c].memory_bytes
        spans = np.array(lifetimes.get(c, ()), np.int64).reshape(-1, 3)
        if not len(spans):
            used[c] = weights
            worst = worst if weights <= limit else Status.OUT_OF_MEMORY
            continue
        buffers = Buffers(lower=spans[:, 0], upper=spans[:, 1], size=spans[:, 2])
        found = allocate(buffers, max(0, int(limit - weights)), seconds)
        used[c] = weights + found.height
        if not found.status.ok and worst is not Status.OUT_OF_MEMORY:
            worst = found.status
    return worst, used


def _weights(problem: Problem, present: np.ndarray, chip: int) -> int:
    return int(problem.held_weights.rounded_up.total((present >> chip) & 1 == 1))


def _lifetimes(
    problem: Problem, home: np.ndarray, present: np.ndarray
) -> dict[int, list[tuple[int, int, int]]]:
    """(lower, upper, bytes) of each tensor by chip; times are node indices, the end is N."""
    graph, end = problem.graph, problem.graph.num_nodes
    tensors: dict[tuple[int, int], list[int]] = defaultdict(list)
    for e in range(graph.num_edges):
        tensors[int(graph.senders[e]), int(graph.edge_output[e])].append(e)
    spans: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
    placed = np.zeros(end)
    for (u, _), edges in tensors.items():
        size = float(problem.edge_bytes[edges].max())
        placed[u] += size
        for chip, lower, upper in _presence_times(problem, home, present, u, edges):
            spans[chip].append((lower, upper, int(np.ceil(size))))
    for u in np.flatnonzero(problem.output_bytes > placed):
        rest = int(np.ceil(problem.output_bytes[u] - placed[u]))
        for chip in _chips(int(present[u])):
            spans[chip].append((int(u), end, rest))
    return {c: [s for s in rows if s[2] > 0] for c, rows in spans.items()}


def _presence_times(
    problem: Problem, home: np.ndarray, present: np.ndarray, u: int, edges: list[int]
) -> list[tuple[int, int, int]]:
    graph, end = problem.graph, problem.graph.num_nodes
    here, at = int(present[u]), int(home[u])
    last: dict[int, int] = {}
    for e in edges:
        w = int(graph.receivers[e])
        for chip in _chips(int(present[w])):
            last[chip] = max(last.get(chip, 0), w)
    away = [chip for chip in last if not (here >> chip) & 1]
    kept = at if away or graph.is_output[u] else None
    times = [
        (chip, u, end if chip == kept else last.get(chip, end - 1) + 1) for chip in _chips(here)
    ]
    times += [(chip, 0, last[chip] + 1) for chip in away]
    if problem.rules.relay and away:
        between = set(range(at + 1, max(away))) - set(away)
        times += [(chip, 0, end) for chip in sorted(between)]
    return times


def _chips(word: int) -> list[int]:
    return [c for c in range(64) if (word >> c) & 1]
