"""Max-load as hypergraph partitioning: what every optimizer of it works on.

Nodes that must share a device become one *block*. A node with consumers in other blocks is a *net*
whose pins are its own block and theirs. A net whose pins sit on one device costs nothing; any other
costs its transfer seconds on every accelerator that it touches. That is the max-load objective
exactly: the source's accelerator pays to send, every other touched one pays to receive.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import no_type_check

import numpy as np
from jaxtyping import Bool, Float64, Int16, Int32, Int64
from numba import njit

from go_rl.core import Problem
from go_rl.core.compiled_struct import CompiledStruct
from go_rl.objectives.host.simulate.device_rules import NO_PIN, placement


@dataclass(frozen=True, eq=False)
class Hypergraph(CompiledStruct):
    """``B`` blocks, ``M`` nets, ``P`` pins, ``K`` device kinds, ``D`` devices."""

    work: Float64[np.ndarray, "K B"]
    """[K, B] seconds of each block on each kind; inf: cannot run."""
    size: Float64[np.ndarray, "B"]
    """[B] bytes of weights."""
    allowed: Bool[np.ndarray, "B D"]
    """[B, D] the block may sit on the device: kind, pin, and its own size fits."""
    net_seconds: Float64[np.ndarray, "M"]
    """[M] transfer seconds, > 0."""
    pin_offsets: Int32[np.ndarray, "M1"]
    """[M + 1] rows of `pins`."""
    pins: Int32[np.ndarray, "P"]
    """[P] distinct blocks of each net, at least two."""
    block_offsets: Int32[np.ndarray, "B1"]
    """[B + 1] rows of `nets`."""
    nets: Int32[np.ndarray, "P"]
    """[P] nets of each block."""


@dataclass(frozen=True, eq=False)
class Devices(CompiledStruct):
    """The hardware side, [D] each."""

    kind: Int16[np.ndarray, "D"]
    """[D] row of `Hypergraph.work`."""
    is_cpu: Bool[np.ndarray, "D"]
    """[D] communication is free."""
    limit: Float64[np.ndarray, "D"]
    """[D] bytes of weights; inf: unlimited."""


@dataclass(frozen=True, eq=False)
class Contraction:
    """A problem as a hypergraph, and the way back."""

    hypergraph: Hypergraph
    devices: Devices
    block: Int32[np.ndarray, "N"]
    """[N] block of each node."""


def contract_problem(problem: Problem) -> Contraction:
    """Return the hypergraph of ``problem``; pins and memory decide `allowed`."""
    place, nodes = placement(problem), problem.graph.num_nodes
    _, block = np.unique(place.leader, return_inverse=True)
    block = block.reshape(-1).astype(np.int32)
    pinned = np.flatnonzero(place.pin != NO_PIN)
    blocks, num_devices = int(block.max()) + 1, len(place.kind)
    work = np.stack([np.bincount(block, row, blocks) for row in place.seconds])
    size = np.bincount(block, place.size, blocks)
    allowed = np.isfinite(work)[place.kind].T & (size[:, None] <= place.limit[None, :])
    for n in pinned:
        allowed[block[n]] &= np.arange(num_devices) == place.pin[n]
    source = np.arange(nodes, dtype=np.int64)
    senders = np.concatenate([source, place.senders.astype(np.int64)])
    blocks_met = np.concatenate([block, block[place.receivers]])
    seconds = place.transfer
    hypergraph = build_hypergraph(work, size, allowed, (seconds, senders, blocks_met))
    return Contraction(hypergraph, Devices(place.kind, place.is_cpu, place.limit), block)


def build_hypergraph(
    work: Float64[np.ndarray, "K B"],
    size: Float64[np.ndarray, "B"],
    allowed: Bool[np.ndarray, "B D"],
    nets: tuple[Float64[np.ndarray, "M"], Int64[np.ndarray, "X"], Int32[np.ndarray, "X"]],
) -> Hypergraph:
    """Return the hypergraph of incidences ``(seconds [M], net of each [X], block of each [X])``.

    Repeated incidences, nets of one pin and nets that cost nothing are dropped; nets with the same
    pins are merged.
    """
    seconds, net, block = nets
    blocks = work.shape[1]
    keys = np.unique(net.astype(np.int64) * blocks + block)
    net, block = keys // blocks, (keys % blocks).astype(np.int32)
    degree = np.bincount(net, minlength=len(seconds))
    kept = (degree > 1) & (seconds > 0)
    inside = kept[net]
    seconds, degree, block = seconds[kept], degree[kept], block[inside]
    offsets = np.zeros(len(degree) + 1, np.int64)
    np.cumsum(degree, out=offsets[1:])
    seconds, offsets, block = _merge_equal(seconds, offsets, block)
    net = np.repeat(np.arange(len(seconds)), np.diff(offsets))
    rows = np.zeros(blocks + 1, np.int32)
    np.cumsum(np.bincount(block, minlength=blocks), out=rows[1:])
    by_block = np.argsort(block, kind="stable")
    return Hypergraph(
        work=np.ascontiguousarray(work),
        size=np.ascontiguousarray(size),
        allowed=np.ascontiguousarray(allowed),
        net_seconds=seconds,
        pin_offsets=offsets.astype(np.int32),
        pins=block,
        block_offsets=rows,
        nets=net[by_block].astype(np.int32),
    )


def contract(hypergraph: Hypergraph, cluster: Int32[np.ndarray, "B"]) -> Hypergraph:
    """Return the hypergraph whose blocks are the clusters ``0..C-1`` of ``cluster`` [B]."""
    clusters = int(cluster.max()) + 1
    work = np.stack([np.bincount(cluster, row, clusters) for row in hypergraph.work])
    size = np.bincount(cluster, hypergraph.size, clusters)
    forbidden = np.zeros((clusters, hypergraph.allowed.shape[1]), np.bool_)
    b, d = np.nonzero(~hypergraph.allowed)
    forbidden[cluster[b], d] = True
    net = np.repeat(np.arange(len(hypergraph.net_seconds)), np.diff(hypergraph.pin_offsets))
    nets = hypergraph.net_seconds, net, cluster[hypergraph.pins]
    return build_hypergraph(work, size, ~forbidden, nets)


def block_seconds(hypergraph: Hypergraph) -> Float64[np.ndarray, "B"]:
    """[B] seconds of each block on its fastest kind."""
    return hypergraph.work.min(axis=0)


@njit(cache=True, nogil=True)
@no_type_check
def device_loads(hypergraph, devices, device):
    """Loads [D] of the assignment ``device`` [B], in seconds."""
    loads = np.zeros(devices.kind.shape[0])
    for b in range(device.shape[0]):
        loads[device[b]] += hypergraph.work[devices.kind[device[b]], b]
    for m in range(hypergraph.net_seconds.shape[0]):
        touched = np.uint64(0)
        for i in range(hypergraph.pin_offsets[m], hypergraph.pin_offsets[m + 1]):
            touched |= np.uint64(1) << np.uint64(device[hypergraph.pins[i]])
        if touched & (touched - np.uint64(1)):
            for d in range(loads.shape[0]):
                if not devices.is_cpu[d] and (touched >> np.uint64(d)) & np.uint64(1):
                    loads[d] += hypergraph.net_seconds[m]
    return loads


def _merge_equal(
    seconds: Float64[np.ndarray, "M"],
    offsets: Int64[np.ndarray, "M1"],
    pins: Int32[np.ndarray, "P"],
) -> tuple[Float64[np.ndarray, "M2"], Int64[np.ndarray, "M3"], Int32[np.ndarray, "P2"]]:
    """Merge nets with equal pins, whose rows are sorted, by two independent 64-bit row hashes."""
    if not len(seconds):
        return seconds, offsets, pins
    signature = np.stack([_row_hash(pins, offsets, seed) for seed in (1, 2)], axis=1)
    _, first, group = np.unique(signature, axis=0, return_index=True, return_inverse=True)
    degree = np.diff(offsets)
    rows = [pins[offsets[m] : offsets[m + 1]] for m in first]
    merged = np.zeros(len(first) + 1, np.int64)
    np.cumsum(degree[first], out=merged[1:])
    return np.bincount(group.reshape(-1), seconds, len(first)), merged, np.concatenate(rows)


def _row_hash(
    pins: Int32[np.ndarray, "P"], offsets: Int64[np.ndarray, "M1"], seed: int
) -> Int64[np.ndarray, "M"]:
    table = np.random.default_rng(seed).integers(2**62, size=int(pins.max()) + 1)
    return np.add.reduceat(table[pins], offsets[:-1])
