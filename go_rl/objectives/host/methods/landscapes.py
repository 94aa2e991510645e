"""Local search on max-load and on latency: starts, moves and values of assignments, and proofs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Int32

from go_rl.core import Budget, Progress
from go_rl.objectives.host.bounds import ROUNDING, fractional_bound
from go_rl.objectives.host.greedy import greedy_latency
from go_rl.objectives.host.hypergraph import Devices, Hypergraph
from go_rl.objectives.host.max_load_cut_bound import cut_bound
from go_rl.objectives.host.methods.block_moves import CoolingSchedule
from go_rl.objectives.host.methods.interval_dp import split_for_latency
from go_rl.objectives.host.methods.latency_anneal import anneal_latency, members_of
from go_rl.objectives.host.methods.max_load_anneal import anneal
from go_rl.objectives.host.methods.max_load_dp import assignment_value, splits
from go_rl.objectives.host.methods.walkers import (
    SAFETY,
    BlockDevices,
    Landscape,
    Walker,
    WalkSettings,
    walk,
)
from go_rl.objectives.host.orders import block_orders, latency_orders
from go_rl.objectives.host.simulate.device_rules import placement
from go_rl.objectives.host.simulate.latency import evaluate_latency

MAX_LOAD_SETTINGS = WalkSettings(
    orders=8, moves_a_cycle=200_000, hot=0.05, cold=2e-4, decades=1.5, moves_a_second=1e6
)
LATENCY_SETTINGS = WalkSettings(
    orders=12, moves_a_cycle=100_000, hot=0.15, cold=1e-5, decades=2.5, moves_a_second=2e4
)
MAX_LOAD_PROBE = 20_000
"""Moves of the first round of a walker, which measures its pace."""
LATENCY_PROBE = 2_000
"""Most such moves on latency."""
PROBE_NODES = 2_000_000
"""Nodes that this round may price on latency."""
START_SLACK = 1.3
"""Splits up to this many times as costly as the best are worth a walker of their own."""
CUT_SECONDS = 5.0
"""Time for the cut bound when the budget sets none."""
CUT_SHARE = 0.1
"""Share of the time left that each cut bound may take."""
FIRST_LEG = 0.15
"""Share of a time budget walked before the first cut bound."""
EXACT_SETUP_SECONDS = 1.0
"""Time kept for building the CP-SAT model."""
BOUND_SHARE = 0.3
"""Share of a time budget kept for proving the bound; none of a budget of samples only."""


class LatencyLandscape(Landscape):
    """Latency: each move is priced in full."""

    def candidates(self, seed: int, count: int) -> Iterator[BlockDevices]:
        """Yield the split and the greedy fill of each order."""
        blocks = self.workspace.blocks
        for order in latency_orders(blocks, seed, count):
            split = split_for_latency(self.contraction, order)
            for device in (split, greedy_latency(blocks, order)):
                if device is not None:
                    yield device

    def fallback(self) -> BlockDevices:
        """Return each block on the first device that it may have."""
        return self.contraction.hypergraph.allowed.argmax(axis=1).astype(np.int16)

    def value(self, device: BlockDevices) -> float:
        """Return the latency of an assignment of blocks, inf when it is illegal."""
        return evaluate_latency(self.problem, device[self.contraction.block]).seconds

    def anneal(
        self,
        hypergraph: Hypergraph,
        owner: Int32[np.ndarray, "N"],
        device: BlockDevices,
        schedule: CoolingSchedule,
        rng: np.random.Generator,
    ) -> tuple[BlockDevices, float]:
        """Run `anneal_latency`."""
        devices = self.contraction.devices
        level = placement(self.problem), devices, members_of(owner, _one_cpu_a_kind(devices))
        return anneal_latency(hypergraph, level, device, schedule, rng)

    def search(
        self, walkers: Sequence[Walker], progress: Progress, seed: int
    ) -> tuple[BlockDevices | None, float, Progress]:
        """Walk until the budget ends."""
        probe = max(1, min(LATENCY_PROBE, PROBE_NODES // self.problem.graph.num_nodes))
        best = walk(walkers, probe, progress, np.random.default_rng(seed))
        return best.best if np.isfinite(best.least) else None, progress.bound, progress


class MaxLoadLandscape(Landscape):
    """Max-load: a move changes the loads of two devices."""

    def candidates(self, seed: int, count: int) -> Iterator[BlockDevices]:
        """Yield splits of several orders that are not much worse than the best."""
        orders = block_orders(self.problem, self.contraction, seed, count)
        return splits(self.contraction, orders, START_SLACK)

    def fallback(self) -> BlockDevices:
        """Return each block on the device that runs it fastest, whatever the memory."""
        hypergraph, devices = self.contraction.hypergraph, self.contraction.devices
        work = hypergraph.work[devices.kind].T
        return np.where(hypergraph.allowed, work, np.inf).argmin(axis=1).astype(np.int16)

    def value(self, device: BlockDevices) -> float:
        """Return the largest load of an assignment of blocks, inf when it overfills a memory."""
        return assignment_value(self.contraction, device)

    def anneal(
        self,
        hypergraph: Hypergraph,
        owner: Int32[np.ndarray, "N"],
        device: BlockDevices,
        schedule: CoolingSchedule,
        rng: np.random.Generator,
    ) -> tuple[BlockDevices, float]:
        """Run the compiled function of that name; the nodes behind a block do not matter."""
        return anneal(hypergraph, self.contraction.devices, device, schedule, rng)

    def search(
        self, walkers: Sequence[Walker], progress: Progress, seed: int
    ) -> tuple[BlockDevices | None, float, Progress]:
        """Walk, then prove; an early cut bound ends the walk at a proven optimum."""
        budget, low = progress.budget, fractional_bound(self.contraction)
        progress.raise_bound(low * (1.0 - ROUNDING))
        rng = np.random.default_rng(seed)
        timed = budget.seconds is not None
        for share in (FIRST_LEG, 1.0 - BOUND_SHARE) if timed else (1.0,):
            walking = replace(progress, budget=_part(budget, share))
            best = walk(walkers, MAX_LOAD_PROBE, walking, rng)
            progress = replace(walking, budget=budget)
            if progress.proved or not np.isfinite(best.least):
                continue
            seconds = CUT_SHARE * progress.remaining_seconds if timed else CUT_SECONDS
            if seconds > 0:
                low = max(low, cut_bound(self.contraction, low, best.least, seconds))
                progress.raise_bound(low * (1.0 - ROUNDING))
        if not np.isfinite(best.least):
            return None, 0.0, progress
        return self._prove(best, progress)

    def _prove(self, best: Walker, progress: Progress) -> tuple[BlockDevices, float, Progress]:
        """Give CP-SAT the time that is left; a better assignment may come of it."""
        low, timed = progress.bound, progress.budget.seconds is not None
        left = SAFETY * progress.remaining_seconds - EXACT_SETUP_SECONDS if timed else 0.0
        if left <= 0 or progress.proved:
            return best.best, low, progress
        from go_rl.objectives.host.methods.max_load_exact import (
            solve_exactly,  # OR-Tools: a fifth of a second
        )

        known = best.least, best.best
        bound, better = solve_exactly(self.contraction, low, known, left, os.cpu_count() or 1)
        if better is None or not progress.record(self.value(better)):
            better = best.best
        return better, max(low, bound), progress


def _one_cpu_a_kind(devices: Devices) -> Int32[np.ndarray, "C"]:
    cpus = np.flatnonzero(devices.is_cpu)
    _, first = np.unique(devices.kind[cpus], return_index=True)
    return cpus[first].astype(np.int32)


def _part(budget: Budget, share: float) -> Budget:
    """The budget with only ``share`` of its seconds."""
    return budget if budget.seconds is None else replace(budget, seconds=share * budget.seconds)
