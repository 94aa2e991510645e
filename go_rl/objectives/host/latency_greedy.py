"""The compiler heuristic for latency: fill accelerators in topological order up to their memory."""

from __future__ import annotations

import numpy as np
from jaxtyping import Int16

from go_rl.objectives.host.latency_blocks import LatencyBlocks


def greedy_latency_blocks(
    blocks: LatencyBlocks, order: np.ndarray
) -> Int16[np.ndarray, "B"] | None:
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
