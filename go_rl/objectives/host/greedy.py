"""The compiler heuristics for max-load and latency: fill devices in topological order."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Bool, Float64, Int16, Int32

from go_rl.objectives.host.hypergraph import Contraction
from go_rl.objectives.host.latency_blocks import LatencyBlocks

ChooseDevice = Callable[[int, Bool[np.ndarray, "D"], Float64[np.ndarray, "D"]], int]
"""Device of a block, from the devices with room and their loads."""


def greedy_max_load(
    contraction: Contraction, order: Int32[np.ndarray, "B"]
) -> Int16[np.ndarray, "B"] | None:
    """Return the device [B] of each block: accelerators filled along ``order``, balanced by
    compute, or the block with the fewest devices first when that leaves one without room; legal for
    memory, colocation, pins and supported kinds. None when both leave one without room."""
    hypergraph, devices = contraction.hypergraph, contraction.devices
    tiles = np.flatnonzero(~devices.is_cpu)
    main = tiles if tiles.size else np.arange(len(devices.kind))
    work = hypergraph.work[devices.kind]
    usable = np.where(hypergraph.allowed.T & np.isfinite(work), work, 0.0)
    share = usable[main].max(axis=0).sum() / len(main)
    at = 0

    def least_loaded(b: int, room: np.ndarray, loads: np.ndarray) -> int:
        return int(np.where(room, loads + work[:, b], np.inf).argmin())

    def next_with_room(b: int, room: np.ndarray, loads: np.ndarray) -> int:
        nonlocal at
        while at + 1 < len(main) and loads[main[at]] + 0.5 * work[main[at], b] > share:
            at += 1
        later = main[at:][room[main[at:]]]
        return int(later[0]) if later.size else least_loaded(b, room, loads)

    device = _fill(contraction, order, next_with_room)
    if device is None:
        fewest = hypergraph.allowed.sum(axis=1)
        device = _fill(contraction, np.lexsort((-hypergraph.size, fewest)), least_loaded)
    if device is None:
        return None
    held = np.bincount(device, hypergraph.size, len(devices.kind))
    return device if (held <= devices.limit).all() else None


def _fill(
    contraction: Contraction, order: np.ndarray, choose: ChooseDevice
) -> Int16[np.ndarray, "B"] | None:
    hypergraph, devices = contraction.hypergraph, contraction.devices
    loads, held = np.zeros(len(devices.kind)), np.zeros(len(devices.kind))
    device = np.empty(len(order), np.int16)
    for b in order.tolist():
        room = hypergraph.allowed[b] & (held + hypergraph.size[b] <= devices.limit)
        if not room.any():
            return None
        d = choose(b, room, loads)
        device[b] = d
        loads[d] += hypergraph.work[devices.kind[d], b]
        held[d] += hypergraph.size[b]
    return device


def greedy_latency(blocks: LatencyBlocks, order: np.ndarray) -> Int16[np.ndarray, "B"] | None:
    """Return the device [B] of each block along a topological ``order``: each accelerator in turn
    takes blocks until its memory is full, CPUs take the rest (Tarnawski et al., appendix F), legal
    by contiguity and support; None when a block finds no room."""
    hypergraph, devices = blocks.contraction.hypergraph, blocks.contraction.devices
    accelerators = np.flatnonzero(~devices.is_cpu)
    cpus = np.flatnonzero(devices.is_cpu)
    held, used = np.zeros(len(devices.kind)), np.zeros(len(devices.kind), np.bool_)
    device, at = np.empty(len(order), np.int16), 0
    for b in order:
        allowed, size = hypergraph.allowed[b], hypergraph.size[b]
        while at < len(accelerators) and not (
            allowed[accelerators[at]]
            and held[accelerators[at]] + size <= devices.limit[accelerators[at]]
        ):
            if not allowed[accelerators[at:]].any():
                break
            at += 1
        fits = at < len(accelerators) and allowed[accelerators[at]]
        if fits:
            device[b] = accelerators[at]
            held[accelerators[at]] += size
            used[accelerators[at]] = True
            continue
        able = cpus[allowed[cpus]]
        if not able.size:
            return None
        device[b] = able[hypergraph.work[devices.kind[able], b].argmin()]
        at += 1 if at < len(accelerators) and used[accelerators[at]] else 0
    return device
