"""Multilevel annealing for latency, from the best splits of the sequential DP."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Int16, Int32

from go_rl.core import Budget, Plan, Problem, Progress
from go_rl.search.latency_anneal import Members, anneal_latency
from go_rl.search.latency_blocks import LatencyBlocks, latency_blocks
from go_rl.search.latency_bounds import latency_bound
from go_rl.search.latency_dp import latency_orders, split_for_latency
from go_rl.search.latency_greedy import greedy_latency_blocks
from go_rl.search.max_load_anneal import Schedule
from go_rl.search.max_load_coarsening import coarsen
from go_rl.search.max_load_hypergraph import Devices
from go_rl.search.max_load_plan import failed_plan, finished_plan
from go_rl.simulate.device_rules import OK, placement
from go_rl.simulate.latency import consumers, latency_batch


@dataclass(frozen=True)
class LatencySearch:
    """Sequential DP over several orders, then multilevel simulated annealing."""

    orders: int = 12
    """Topological orders that the DP splits for a start."""
    walkers: int = 4
    """Independent searches; results do not depend on how many threads serve them."""
    moves_a_cycle: int = 20_000
    """Moves of one walker's first coarsen-anneal cycle; later cycles grow."""
    hot: float = 0.03
    """Largest first temperature of a cycle, relative to the latency."""
    cold: float = 1e-5
    """Last temperature."""

    @property
    def name(self) -> str:
        """What tables call it."""
        return "local-search"

    def optimize(self, problem: Problem, budget: Budget, seed: int) -> Plan:
        """Return the best plan found; one sample is one split or one priced move."""
        progress = Progress(budget)
        blocks = latency_blocks(problem)
        contraction = blocks.contraction
        if not contraction.hypergraph.allowed.any(axis=1).all():
            return failed_plan(problem, contraction, self.name, seed, progress)
        bound = latency_bound(problem)
        starts = _starts(problem, blocks, seed, self.orders, progress)
        walkers = [
            _Walker(
                self, problem, blocks, starts[i % len(starts)], np.random.default_rng([seed, i])
            )
            for i in range(self.walkers)
        ]
        best = _walk(walkers, progress, bound)
        if not np.isfinite(best.least):
            return failed_plan(problem, contraction, self.name, seed, progress)
        return finished_plan(
            problem, best.best[contraction.block], bound, self.name, seed, progress
        )


Start = tuple[float, Int16[np.ndarray, "B"]]
"""A priced assignment of blocks."""


@dataclass
class _Walker:
    """One search: where it is, the best it saw, and how fast it moves."""

    settings: LatencySearch
    problem: Problem
    blocks: LatencyBlocks
    start: Start
    rng: np.random.Generator
    device: Int16[np.ndarray, "B"] = field(init=False)
    best: Int16[np.ndarray, "B"] = field(init=False)
    least: float = field(init=False)
    rate: float = 2e4
    """Moves a second, measured."""
    cycles: int = 0
    stale: int = 0

    def __post_init__(self) -> None:
        self.least, self.device = self.start
        self.best = self.device.copy()

    def cycle(self, moves: int) -> int:
        """Coarsen, anneal every level from the coarsest down; returns the moves made."""
        started = time.perf_counter()
        contraction, rng = self.blocks.contraction, self.rng
        levels = coarsen(contraction.hypergraph, self.device, rng)
        levels = levels[: int(np.ceil(float(rng.random()) * len(levels)))]
        graphs = [contraction.hypergraph, *(graph for graph, _ in levels)]
        owners, device = [contraction.block], self.device
        for _, cluster in levels:
            owners.append(cluster[owners[-1]])
            coarse = np.empty(int(cluster.max()) + 1, np.int16)
            coarse[cluster] = device
            device = coarse
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
        self.rate = share * len(graphs) / max(1e-6, time.perf_counter() - started)
        return share * len(graphs)

    def _accept(self, value: float, device: Int16[np.ndarray, "B"]) -> None:
        self.cycles += 1
        self.stale += 1
        if value < self.least:
            self.best, self.least, self.stale = device.copy(), value, 0
        self.device = device if self.stale < 5 else self.best.copy()


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
        for device in (split_for_latency(blocks, order), greedy_latency_blocks(blocks, order)):
            if device is not None and not progress.spent:
                value = _price(problem, blocks, device)
                progress.record(value)
                found[device.tobytes()] = (value, device)
    if not found:
        allowed = blocks.contraction.hypergraph.allowed
        device = allowed.argmax(axis=1).astype(np.int16)
        found[b""] = (_price(problem, blocks, device), device)
        progress.record(found[b""][0])
    return sorted(found.values(), key=lambda pair: pair[0])


def _price(problem: Problem, blocks: LatencyBlocks, device: Int16[np.ndarray, "B"]) -> float:
    values, codes = latency_batch(problem, device[blocks.contraction.block][None, :])
    return float(values[0]) if codes[0] == OK else float("inf")


def _walk(walkers: list[_Walker], progress: Progress, bound: float) -> _Walker:
    """Cycle all walkers until the budget ends or the bound is met; returns the best one."""
    moves = walkers[0].settings.moves_a_cycle
    threads = min(len(walkers), os.cpu_count() or 1)
    lead = min(walkers, key=lambda w: w.least)
    with ThreadPoolExecutor(threads) as pool:
        while not progress.spent and lead.least > bound * (1.0 + 1e-12):
            share = _share(walkers, moves, progress, threads)
            if share < 1:
                break
            made = sum(pool.map(_Walker.cycle, walkers, [share] * len(walkers)))
            lead = min(walkers, key=lambda w: w.least)
            progress.record(lead.least, made)
            moves = min(int(1.3 * moves), 100 * walkers[0].settings.moves_a_cycle)
            worst = max(walkers, key=lambda w: w.least)
            if lead.cycles % 8 == 0 and lead.least < worst.least:
                worst.device = lead.best.copy()
    return lead


def _share(walkers: list[_Walker], moves: int, progress: Progress, threads: int) -> int:
    """Moves of each walker's next cycle that the budget still pays for."""
    rate = min(w.rate for w in walkers) * threads / len(walkers)
    share = min(float(moves), progress.remaining_samples / len(walkers))
    if walkers[0].cycles == 0 and np.isfinite(progress.remaining_seconds):
        share = min(share, 2_000.0)
    return int(min(share, 0.9 * progress.remaining_seconds * rate))
