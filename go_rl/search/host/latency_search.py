"""Multilevel annealing for latency, from the best splits of the sequential DP."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Int16, Int32

from go_rl.core import Budget, Objective, Plan, Problem, Progress
from go_rl.core.decisions import Decisions
from go_rl.objectives.host.hypergraph import Devices
from go_rl.objectives.host.latency_blocks import LatencyBlocks
from go_rl.objectives.host.latency_bounds import latency_bound
from go_rl.objectives.host.latency_greedy import greedy_latency_blocks
from go_rl.objectives.host.latency_orders import latency_orders
from go_rl.objectives.host.workspace import host_workspace
from go_rl.objectives.incumbent import finish_plan
from go_rl.search.host.coarsening import carry_up, coarsen
from go_rl.search.host.interval_dp import split_for_latency
from go_rl.search.host.latency_anneal import Members, anneal_latency
from go_rl.search.host.max_load_anneal import Schedule
from go_rl.search.host.walkers import SETUP_SECONDS_A_PIN, STALE, Rounds, WalkerPace, walk
from go_rl.search.host.warm_up import warm_up
from go_rl.simulate.host.device_rules import OK, placement
from go_rl.simulate.host.latency import consumers, latency_batch

PROBE_NODES = 2_000_000
"""Nodes that the first, pace-measuring round of a walker may visit."""
START_SHARE = 0.5
"""Splits stop once they took this many times the time that is left."""


@dataclass(frozen=True)
class LatencySearch:
    """Sequential DP over several orders, then multilevel simulated annealing."""

    orders: int = 12
    """Topological orders that the DP splits for a start."""
    walkers: int = 4
    """Independent searches; results do not depend on how many threads serve them."""
    moves_a_cycle: int = 100_000
    """Moves of one walker's first coarsen-anneal cycle; later cycles grow."""
    hot: float = 0.15
    """Largest first temperature of a cycle, relative to the latency."""
    cold: float = 1e-5
    """Last temperature."""

    @property
    def name(self) -> str:
        """What tables call it."""
        return "local-search"

    def optimize(self, problem: Problem, budget: Budget, seed: int) -> Plan:
        """Return the best plan found; one sample is one split or one priced move.

        Kernels are compiled before the budget's clock starts.
        """
        warm_up(_compile, Objective.LATENCY)
        return self._optimize(problem, budget, seed)

    def _optimize(self, problem: Problem, budget: Budget, seed: int) -> Plan:
        workspace, progress = host_workspace(problem), Progress(budget)
        if workspace.infeasible is not None:
            return finish_plan(workspace, workspace.infeasible, self.name, seed, progress)
        blocks, contraction = workspace.blocks, workspace.contraction
        progress.raise_bound(latency_bound(problem))
        starts = _starts(problem, blocks, seed, self.orders, progress)
        walkers = [
            _LatencyWalker(
                self, problem, blocks, starts[i % len(starts)], np.random.default_rng([seed, i])
            )
            for i in range(self.walkers)
        ]
        probe = max(1, min(2_000, PROBE_NODES // problem.graph.num_nodes))
        rounds = Rounds(probe, self.moves_a_cycle)
        best = walk(walkers, rounds, progress, np.random.default_rng(seed))
        if not np.isfinite(best.least):
            return finish_plan(workspace, workspace.gave_up, self.name, seed, progress)
        found = Decisions(best.best[contraction.block][None])
        return finish_plan(workspace, found, self.name, seed, progress, progress.bound)


Start = tuple[float, Int16[np.ndarray, "B"]]
"""A priced assignment of blocks."""


def _compile(problem: Problem) -> None:
    LatencySearch(orders=4, moves_a_cycle=100)._optimize(problem, Budget(samples=4_000), 0)


@dataclass
class _LatencyWalker:
    """One search: where it is, the best it saw, and how fast it moves."""

    settings: LatencySearch
    problem: Problem
    blocks: LatencyBlocks
    start: Start
    rng: np.random.Generator
    device: Int16[np.ndarray, "B"] = field(init=False)
    best: Int16[np.ndarray, "B"] = field(init=False)
    least: float = field(init=False)
    pace: WalkerPace = field(init=False)
    stale: int = 0

    def __post_init__(self) -> None:
        pins = len(self.blocks.contraction.hypergraph.pins)
        self.pace = WalkerPace(2e4, SETUP_SECONDS_A_PIN * pins)
        self.least, self.device = self.start
        self.best = self.device.copy()

    def cycle(self, moves: int, depth: float) -> int:
        """Coarsen, anneal every level from the coarsest down; returns the moves made."""
        clock, rng, contraction = [time.perf_counter()], self.rng, self.blocks.contraction
        levels = coarsen(contraction.hypergraph, self.device, rng, depth)[: moves - 1]
        clock.append(time.perf_counter())
        graphs = [contraction.hypergraph, *(graph for graph, _ in levels)]
        owners, device = [contraction.block], self.device
        for _, cluster in levels:
            owners.append(cluster[owners[-1]])
            device = carry_up(device, cluster)
        hot = self.settings.hot * 10.0 ** (-2.5 * rng.random())
        share, value = max(1, moves // len(graphs)), np.inf
        for level in range(len(graphs) - 1, -1, -1):
            members = _members(self.problem, contraction.devices, owners[level])
            schedule = Schedule(share, hot, min(self.settings.cold, hot))
            last = device.copy()
            best, value = anneal_latency(
                graphs[level], contraction.devices, members, last, schedule, rng
            )
            device = best if np.isfinite(value) else last
            if level > 0:
                device = device[levels[level - 1][1]]
            hot = max(self.settings.cold, 0.5 * hot)
        self._accept(value, device)
        made = share * len(graphs)
        self.pace.measure(made, clock[1] - clock[0], time.perf_counter() - clock[1])
        return made

    def _accept(self, value: float, device: Int16[np.ndarray, "B"]) -> None:
        self.stale += 1
        if value < self.least:
            self.best, self.least, self.stale = device.copy(), value, 0
        self.device = device if self.stale < STALE else self.best.copy()


def _members(problem: Problem, devices: Devices, owner: Int32[np.ndarray, "N"]) -> Members:
    offsets = np.zeros(int(owner.max()) + 2, np.int32)
    np.cumsum(np.bincount(owner), out=offsets[1:])
    cpus = np.flatnonzero(devices.is_cpu)
    _, first = np.unique(devices.kind[cpus], return_index=True)
    rows = consumers(problem.graph)
    return Members(
        place=placement(problem),
        consumer_offsets=rows[0],
        consumers=rows[1],
        node_offsets=offsets,
        nodes=np.argsort(owner, kind="stable").astype(np.int32),
        cpu=cpus[first].astype(np.int32),
    )


def _starts(
    problem: Problem, blocks: LatencyBlocks, seed: int, count: int, progress: Progress
) -> list[Start]:
    """Distinct splits of several orders, best first."""
    found: dict[bytes, Start] = {}
    orders = latency_orders(blocks, seed, count)
    for order in orders:
        for device in (
            split_for_latency(blocks.contraction, order),
            greedy_latency_blocks(blocks, order),
        ):
            if device is not None and not (found and progress.spent):
                value = _price(problem, blocks, device)
                progress.record(value)
                found[device.tobytes()] = (value, device)
        if progress.wall_seconds > START_SHARE * progress.remaining_seconds:
            break
    if not found:
        allowed = blocks.contraction.hypergraph.allowed
        device = allowed.argmax(axis=1).astype(np.int16)
        found[b""] = (_price(problem, blocks, device), device)
        progress.record(found[b""][0])
    return sorted(found.values(), key=lambda pair: pair[0])


def _price(problem: Problem, blocks: LatencyBlocks, device: Int16[np.ndarray, "B"]) -> float:
    values, codes = latency_batch(problem, device[blocks.contraction.block][None, :])
    return float(values[0]) if codes[0] == OK else float("inf")
