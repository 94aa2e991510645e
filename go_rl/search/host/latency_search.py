"""Local search on latency: starts, moves and values of assignments."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Int32

from go_rl.core import Progress
from go_rl.objectives.host.hypergraph import Hypergraph
from go_rl.objectives.host.latency_bounds import latency_bound
from go_rl.objectives.host.latency_greedy import greedy_latency_blocks
from go_rl.objectives.host.latency_orders import latency_orders
from go_rl.objectives.host.workspace import HostWorkspace
from go_rl.search.host.interval_dp import split_for_latency
from go_rl.search.host.latency_anneal import Members, anneal_latency
from go_rl.search.host.max_load_anneal import Schedule
from go_rl.search.host.walkers import (
    START_SHARE,
    BlockDevices,
    Start,
    Walker,
    WalkSettings,
    priced,
    walk,
)
from go_rl.simulate.host.device_rules import placement
from go_rl.simulate.host.latency import consumers, evaluate_latency

LATENCY_SETTINGS = WalkSettings(
    orders=12, moves_a_cycle=100_000, hot=0.15, cold=1e-5, decades=2.5, moves_a_second=2e4
)
PROBE_MOVES = 2_000
"""Most moves of the first round of a walker, which measures its pace."""
PROBE_NODES = 2_000_000
"""Nodes that this round may price."""


class LatencyLandscape:
    """`Landscape` of latency: each move is priced in full."""

    def __init__(self, workspace: HostWorkspace) -> None:
        self.problem, self.blocks = workspace.problem, workspace.blocks
        self.contraction = workspace.contraction

    def starts(self, seed: int, count: int, progress: Progress) -> list[Start]:
        """Distinct splits of several orders, best first."""
        progress.raise_bound(latency_bound(self.problem))
        found: dict[bytes, Start] = {}
        for order in latency_orders(self.blocks, seed, count):
            split = split_for_latency(self.contraction, order)
            for device in (split, greedy_latency_blocks(self.blocks, order)):
                if device is not None and not (found and progress.spent):
                    found[device.tobytes()] = priced(self, device, progress)
            if progress.wall_seconds > START_SHARE * progress.remaining_seconds:
                break
        if not found:
            device = self.contraction.hypergraph.allowed.argmax(axis=1).astype(np.int16)
            return [priced(self, device, progress)]
        return sorted(found.values(), key=lambda start: start[0])

    def value(self, device: BlockDevices) -> float:
        """Return the latency of an assignment of blocks, inf when it is illegal."""
        return evaluate_latency(self.problem, device[self.contraction.block]).seconds_per_step

    def anneal(
        self,
        hypergraph: Hypergraph,
        owner: Int32[np.ndarray, "N"],
        device: BlockDevices,
        schedule: Schedule,
        rng: np.random.Generator,
    ) -> tuple[BlockDevices, float]:
        """Run `anneal_latency`."""
        members = self._members(owner)
        return anneal_latency(hypergraph, self.contraction.devices, members, device, schedule, rng)

    def _members(self, owner: Int32[np.ndarray, "N"]) -> Members:
        devices = self.contraction.devices
        offsets = np.zeros(int(owner.max()) + 2, np.int32)
        np.cumsum(np.bincount(owner), out=offsets[1:])
        cpus = np.flatnonzero(devices.is_cpu)
        _, first = np.unique(devices.kind[cpus], return_index=True)
        rows = consumers(self.problem.graph)
        return Members(
            place=placement(self.problem),
            consumer_offsets=rows[0],
            consumers=rows[1],
            node_offsets=offsets,
            nodes=np.argsort(owner, kind="stable").astype(np.int32),
            cpu=cpus[first].astype(np.int32),
        )

    def search(
        self, walkers: Sequence[Walker], progress: Progress, seed: int
    ) -> tuple[BlockDevices | None, float, Progress]:
        """Walk until the budget ends."""
        probe = max(1, min(PROBE_MOVES, PROBE_NODES // self.problem.graph.num_nodes))
        best = walk(walkers, probe, progress, np.random.default_rng(seed))
        return best.best if np.isfinite(best.least) else None, progress.bound, progress
