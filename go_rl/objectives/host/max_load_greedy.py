"""The compiler heuristic for max-load: fill devices in topological order up to an equal share."""

from __future__ import annotations

import numpy as np
from jaxtyping import Int16, Int32

from go_rl.core import Problem, SearchError
from go_rl.objectives.host.hypergraph import Contraction, contract_problem
from go_rl.objectives.host.orders import block_orders


def greedy_max_load(problem: Problem) -> Int16[np.ndarray, "N"]:
    """Return the device [N] of each node: accelerators filled in topological order, balanced by
    compute, legal for memory, colocation, pins and supported kinds.

    Raises:
        SearchError: some block fits no device, or the fill leaves a block without room.
    """
    contraction = contract_problem(problem)
    order = block_orders(problem, contraction, 0, 1)[0]
    device = greedy_blocks(contraction, order)
    if device is None:
        raise SearchError(
            f"graph {problem.graph.name!r}: the topological fill finds no room for some nodes on "
            f"hardware {problem.hardware.name!r}; give it more memory or turn memory off"
        )
    return device[contraction.block]


def greedy_blocks(
    contraction: Contraction, order: Int32[np.ndarray, "B"]
) -> Int16[np.ndarray, "B"] | None:
    """Return the fill [B] along ``order``, or largest-first when that leaves a block without room;
    None when both do."""
    hypergraph, devices = contraction.hypergraph, contraction.devices
    device = _fill(contraction, order)
    if device is None:
        fewest = hypergraph.allowed.sum(axis=1)
        device = _pack(contraction, np.lexsort((-hypergraph.size, fewest)))
    if device is None:
        return None
    held = np.bincount(device, hypergraph.size, len(devices.kind))
    return device if (held <= devices.limit).all() else None


def _fill(contraction: Contraction, order: np.ndarray) -> Int16[np.ndarray, "B"] | None:
    hypergraph, devices = contraction.hypergraph, contraction.devices
    chips = len(devices.kind)
    main = np.flatnonzero(~devices.is_cpu) if not devices.is_cpu.all() else np.arange(chips)
    loads, held = np.zeros(chips), np.zeros(chips)
    work = hypergraph.work[devices.kind]
    usable = np.where(hypergraph.allowed.T, work, np.inf)
    share = np.where(np.isinf(usable[main]), 0.0, usable[main]).max(axis=0).sum() / len(main)
    device, at = np.empty(len(order), np.int16), 0
    for b in order:
        while at + 1 < len(main) and loads[main[at]] + 0.5 * work[main[at], b] > share:
            at += 1
        room = hypergraph.allowed[b] & (held + hypergraph.size[b] <= devices.limit)
        if not room.any():
            return None
        d = main[at]
        if not room[d]:
            later = [c for c in main[at:] if room[c]]
            d = later[0] if later else np.where(room, loads + work[:, b], np.inf).argmin()
        device[b] = d
        loads[d] += work[d, b]
        held[d] += hypergraph.size[b]
    return device


def _pack(contraction: Contraction, order: np.ndarray) -> Int16[np.ndarray, "B"] | None:
    hypergraph, devices = contraction.hypergraph, contraction.devices
    loads, held = np.zeros(len(devices.kind)), np.zeros(len(devices.kind))
    work = hypergraph.work[devices.kind]
    device = np.empty(len(order), np.int16)
    for b in order:
        room = hypergraph.allowed[b] & (held + hypergraph.size[b] <= devices.limit)
        if not room.any():
            return None
        d = int(np.where(room, loads + work[:, b], np.inf).argmin())
        device[b] = d
        loads[d] += work[d, b]
        held[d] += hypergraph.size[b]
    return device
