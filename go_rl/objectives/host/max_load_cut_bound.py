"""A lower bound on max-load from minimum cuts: what must share a device if the load is to stay low.

Suppose a plan has no load above T. The load of an accelerator as a function of its set of blocks,
work plus cut nets, is submodular, so the least load of any set that holds u but not v is a minimum
cut. When it exceeds T and u cannot sit on a CPU, u and v share a device: merge them and go on.
T is refuted when some merged block fits nowhere, when more blocks than there are accelerators
exclude each other pairwise, or when the work exceeds what all devices do in T. The largest refuted
T is a proven bound.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float64, Int32, Int64
from ortools.graph.python import max_flow

from go_rl.objectives.host.hypergraph import Contraction, Hypergraph, contract

UNITS = 10**9
"""Capacities are whole numbers, T being this many; rounding down keeps the bound valid."""
PRECISION = 1e-6
"""The search for the largest refuted T stops at this relative width."""
MARGIN = 1e-9
"""A cut must exceed T by this much, relatively, to count as exceeding it."""
Deadline = float
"""A `time.perf_counter` reading."""


def cut_bound(contraction: Contraction, low: float, high: float, seconds: float) -> float:
    """Return the largest refuted T between a known bound ``low`` and a reached value ``high``."""
    deadline = time.perf_counter() + seconds
    hypergraph = contraction.hypergraph
    while high - low > PRECISION * high and time.perf_counter() < deadline:
        target = 0.5 * (low + high)
        refuted, merged = _refute(contraction, hypergraph, target, deadline)
        if refuted:
            low = target
        else:
            high, hypergraph = target, merged
    return low


def _refute(
    contraction: Contraction, hypergraph: Hypergraph, target: float, deadline: Deadline
) -> tuple[bool, Hypergraph]:
    """Whether no plan stays within ``target``, and the hypergraph with all proven merges."""
    while True:
        if fractional_refutes(contraction, hypergraph, target):
            return True, hypergraph
        cuts = _Cuts(contraction, hypergraph, target)
        outcome = cuts.merge_round(deadline)
        if outcome.refuted:
            return True, hypergraph
        if not outcome.merges:
            return cuts.clique_refutes(deadline), hypergraph
        hypergraph = contract(hypergraph, _join(outcome.merges, hypergraph.size.shape[0]))
        hypergraph.allowed[hypergraph.size[:, None] > contraction.devices.limit[None, :]] = False
        if time.perf_counter() > deadline:
            return False, hypergraph


def fractional_refutes(contraction: Contraction, hypergraph: Hypergraph, target: float) -> bool:
    """Whether the work alone, spread fractionally over all devices, exceeds ``target`` each."""
    devices = contraction.devices
    on_cpu, on_tile = seconds_by_side(contraction, hypergraph)
    on_cpu = np.where(on_cpu > target, np.inf, on_cpu)
    on_tile = np.where(on_tile > target, np.inf, on_tile)
    if np.isinf(np.minimum(on_cpu, on_tile)).any():
        return True
    cpus = int(devices.is_cpu.sum())
    tiles = len(devices.is_cpu) - cpus
    forced = np.isinf(on_tile)
    room = cpus * target - on_cpu[forced].sum()
    if room < -MARGIN * target:
        return True
    work, price = on_tile[~forced], on_cpu[~forced]
    saved = fractional_knapsack(work, price, room)
    return bool(work.sum() - saved > tiles * target * (1 + MARGIN))


def fractional_knapsack(
    value: Float64[np.ndarray, "X"], price: Float64[np.ndarray, "X"], room: float
) -> float:
    """Return the most value, fractions allowed, of items whose prices sum to at most ``room``."""
    usable = np.isfinite(price)
    value, price = value[usable], price[usable]
    free = value[price <= 0].sum()
    value, price = value[price > 0], price[price > 0]
    order = np.argsort(-value / price)
    before = np.concatenate([[0.0], np.cumsum(price[order])])[:-1]
    share = np.clip((room - before) / price[order], 0.0, 1.0)
    return float(free + (share * value[order]).sum())


def seconds_by_side(
    contraction: Contraction, hypergraph: Hypergraph
) -> tuple[Float64[np.ndarray, "B"], Float64[np.ndarray, "B"]]:
    """Least seconds [B] of each block on a CPU and on an accelerator; inf where it may not sit."""
    devices = contraction.devices
    usable = np.where(hypergraph.allowed.T, hypergraph.work[devices.kind], np.inf)
    none = np.full((1, usable.shape[1]), np.inf)
    on_cpu = np.concatenate([usable[devices.is_cpu], none]).min(axis=0)
    return on_cpu, np.concatenate([usable[~devices.is_cpu], none]).min(axis=0)


@dataclass(frozen=True)
class _Outcome:
    refuted: bool
    merges: list[tuple[int, int]]


class _Cuts:
    """Minimum cuts on one hypergraph, as a flow network with whole capacities.

    A net is two vertices joined by an arc of its seconds, entered from and left to every pin
    without limit: that arc is cut exactly when the net has pins on both sides.
    """

    def __init__(self, contraction: Contraction, hypergraph: Hypergraph, target: float) -> None:
        self.hypergraph, self.target = hypergraph, target
        on_cpu, on_tile = seconds_by_side(contraction, hypergraph)
        self.must_accelerate: Bool[np.ndarray, "B"] = on_cpu > target * (1 + MARGIN)
        self.tiles = int((~contraction.devices.is_cpu).sum())
        self.work = np.where(np.isinf(on_tile), 2 * target, on_tile)
        self.blocks = len(self.work)
        self._build(target / UNITS)

    def _build(self, unit: float) -> None:
        graph, blocks = self.hypergraph, self.blocks
        nets = len(graph.net_seconds)
        net_of_pin = np.repeat(np.arange(nets), np.diff(graph.pin_offsets))
        self.source, self.sink = blocks + 2 * nets, blocks + 2 * nets + 1
        enter, leave = blocks + np.arange(nets), blocks + nets + np.arange(nets)
        self.wall = 4 * UNITS
        every = np.arange(blocks)
        tails = [every, enter, graph.pins, leave[net_of_pin], np.full(blocks, self.source)]
        heads = [np.full(blocks, self.sink), leave, enter[net_of_pin], graph.pins, every]
        self.to_sink = np.minimum(self.wall, np.floor(self.work / unit)).astype(np.int64)
        through = np.minimum(self.wall, np.floor(graph.net_seconds / unit)).astype(np.int64)
        walls = np.full(len(graph.pins), self.wall, np.int64)
        capacities = [self.to_sink, through, walls, walls, np.zeros(blocks, np.int64)]
        self.flow = max_flow.SimpleMaxFlow()
        arcs = self.flow.add_arcs_with_capacity(
            np.concatenate(tails).astype(np.int32),  # pyright: ignore[reportArgumentType]
            np.concatenate(heads).astype(np.int32),  # pyright: ignore[reportArgumentType]
            np.concatenate(capacities),  # pyright: ignore[reportArgumentType]
        )
        self.sink_arc: Int64[np.ndarray, "B"] = np.asarray(arcs)[:blocks]
        self.source_arc: Int64[np.ndarray, "B"] = np.asarray(arcs)[-blocks:]

    def least(self, inside: list[int], outside: int | None) -> tuple[bool, set[int]]:
        """Whether every set with ``inside`` and without ``outside`` loads an accelerator above T,
        and a set of least load."""
        for b in inside:
            self.flow.set_arc_capacity(int(self.source_arc[b]), self.wall)
        if outside is not None:
            self.flow.set_arc_capacity(int(self.sink_arc[outside]), self.wall)
        self.flow.solve(self.source, self.sink)
        above = self.flow.optimal_flow() > UNITS * (1 + MARGIN)
        side = {int(b) for b in self.flow.get_source_side_min_cut() if b < self.blocks}
        for b in inside:
            self.flow.set_arc_capacity(int(self.source_arc[b]), 0)
        if outside is not None:
            self.flow.set_arc_capacity(int(self.sink_arc[outside]), int(self.to_sink[outside]))
        return above, side

    def merge_round(self, deadline: Deadline) -> _Outcome:
        """Blocks that must share a device, found one neighbour at a time."""
        merges: list[tuple[int, int]] = []
        for u in np.argsort(-self.work):
            u = int(u)
            if not self.must_accelerate[u]:
                continue
            if time.perf_counter() > deadline:
                break
            above, side = self.least([u], None)
            if above:
                return _Outcome(True, merges)
            near = self._neighbours(u) & side
            while near and time.perf_counter() < deadline:
                v = near.pop()
                above, side = self.least([u], v)
                if above:
                    merges.append((u, v))
                else:
                    near &= side
        return _Outcome(False, merges)

    def clique_refutes(self, deadline: Deadline) -> bool:
        """Whether more blocks than accelerators exclude each other pairwise (found greedily)."""
        clique: list[int] = []
        for u in np.argsort(-self.work)[: 16 * self.tiles]:
            if not self.must_accelerate[u] or time.perf_counter() > deadline:
                continue
            if all(self.least([int(u), c], None)[0] for c in clique):
                clique.append(int(u))
            if len(clique) > self.tiles:
                return True
        return False

    def _neighbours(self, b: int) -> set[int]:
        graph = self.hypergraph
        found: set[int] = set()
        for m in graph.nets[graph.block_offsets[b] : graph.block_offsets[b + 1]]:
            found.update(graph.pins[graph.pin_offsets[m] : graph.pin_offsets[m + 1]].tolist())
        return found - {b}


def _join(merges: list[tuple[int, int]], blocks: int) -> Int32[np.ndarray, "B"]:
    """Cluster [B] of each block after joining all pairs."""
    root = np.arange(blocks)

    def find(b: int) -> int:
        while root[b] != b:
            root[b] = root[root[b]]
            b = int(root[b])
        return b

    for u, v in merges:
        root[find(u)] = find(v)
    roots = np.array([find(b) for b in range(blocks)])
    return np.unique(roots, return_inverse=True)[1].reshape(-1).astype(np.int32)
