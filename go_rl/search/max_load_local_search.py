"""Multilevel annealing for max-load, from the best splits of the interval DP.

Several walkers, each with its own seed, repeat: coarsen at random inside the current devices, then
anneal from the coarsest level down to single blocks, and keep the best. Walkers run on threads.
"""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Int16

from go_rl.core import Budget, Plan, Problem, Progress
from go_rl.search.max_load_anneal import Schedule, anneal
from go_rl.search.max_load_bounds import max_load_bound
from go_rl.search.max_load_coarsening import coarsen
from go_rl.search.max_load_dp import split_order
from go_rl.search.max_load_greedy import greedy_blocks
from go_rl.search.max_load_hypergraph import Contraction, contract_problem, device_loads
from go_rl.search.max_load_orders import block_orders
from go_rl.search.max_load_plan import failed_plan, finished_plan

Devices16 = Int16[np.ndarray, "B"]
"""[B] device of each block."""


@dataclass(frozen=True)
class MaxLoadSearch:
    """Interval DP over several orders, then multilevel simulated annealing."""

    orders: int = 8
    """Linear orders that the DP splits for a start."""
    walkers: int = 4
    """Independent searches; results do not depend on how many threads serve them."""
    moves_a_cycle: int = 200_000
    """Moves of one walker's first coarsen-anneal cycle; later cycles grow."""
    hot: float = 0.05
    """Largest first temperature of a cycle, as a relative change of one device's load."""
    cold: float = 2e-4
    """Last temperature."""

    @property
    def name(self) -> str:
        """What tables call it."""
        return "local-search"

    def optimize(self, problem: Problem, budget: Budget, seed: int) -> Plan:
        """Return the best plan found; one sample is one split or one priced move."""
        progress = Progress(budget)
        contraction = contract_problem(problem)
        if not contraction.hypergraph.allowed.any(axis=1).all():
            return failed_plan(problem, contraction, self.name, seed, progress)
        bound = max_load_bound(problem)
        starts = _starts(problem, contraction, seed, self.orders, progress)
        walkers = [
            _Walker(self, contraction, starts[i % len(starts)], np.random.default_rng([seed, i]))
            for i in range(self.walkers)
        ]
        best = _walk(walkers, progress, bound)
        if not np.isfinite(best.least):
            return failed_plan(problem, contraction, self.name, seed, progress)
        return finished_plan(
            problem, best.best[contraction.block], bound, self.name, seed, progress
        )


@dataclass
class _Walker:
    """One search: where it is, the best it saw, and how fast it moves."""

    settings: MaxLoadSearch
    contraction: Contraction
    device: Devices16
    rng: np.random.Generator
    best: Devices16 = field(init=False)
    least: float = field(init=False)
    rate: float = 1e6
    """Moves a second, measured."""
    cycles: int = 0
    stale: int = 0

    def __post_init__(self) -> None:
        self.best, self.least = self.device.copy(), _value(self.contraction, self.device)

    def cycle(self, moves: int) -> int:
        """Coarsen, anneal every level from the coarsest down; returns the moves made."""
        started = time.perf_counter()
        rng, fine = self.rng, self.contraction.hypergraph
        depth = float(rng.random())
        levels = coarsen(fine, self.device, rng)
        levels = levels[: int(np.ceil(depth * len(levels)))]
        graphs = [fine, *(graph for graph, _ in levels)]
        device = self.device
        for _, cluster in levels:
            coarse = np.empty(int(cluster.max()) + 1, np.int16)
            coarse[cluster] = device
            device = coarse
        hot = self.settings.hot * 10.0 ** (-1.5 * rng.random())
        share = max(1, moves // len(graphs))
        for level in range(len(graphs) - 1, -1, -1):
            schedule = Schedule(share, hot, min(self.settings.cold, hot))
            best, value = anneal(graphs[level], self.contraction.devices, device, schedule, rng)
            if value < self.least or np.isfinite(value):
                device = best
            if level > 0:
                device = device[levels[level - 1][1]]
            hot = max(self.settings.cold, 0.5 * hot)
        self._accept(device)
        self.cycles += 1
        self.rate = share * len(graphs) / max(1e-6, time.perf_counter() - started)
        return share * len(graphs)

    def _accept(self, device: Devices16) -> None:
        value = _value(self.contraction, device)
        self.stale += 1
        if value < self.least:
            self.best, self.least, self.stale = device.copy(), value, 0
        self.device = device if self.stale < 5 else self.best.copy()


def _starts(
    problem: Problem, contraction: Contraction, seed: int, count: int, progress: Progress
) -> list[Devices16]:
    """Distinct splits of several orders, best first, or a greedy fill where none is legal."""
    found: dict[bytes, tuple[float, Devices16]] = {}
    orders = block_orders(problem, contraction, seed, count)
    for order in orders:
        device = split_order(contraction, order)
        if device is not None:
            value = _value(contraction, device)
            progress.record(value)
            found[device.tobytes()] = (value, device)
        if progress.spent:
            break
    if not found:
        filled = greedy_blocks(contraction, orders[0])
        device = _somewhere(contraction) if filled is None else filled
        value = _value(contraction, device)
        progress.record(value)
        found[device.tobytes()] = (value, device)
    return [device for _, device in sorted(found.values(), key=lambda pair: pair[0])]


def _somewhere(contraction: Contraction) -> Devices16:
    """Each block on the device that runs it fastest, whatever the memory."""
    work = contraction.hypergraph.work[contraction.devices.kind].T
    return np.where(contraction.hypergraph.allowed, work, np.inf).argmin(axis=1).astype(np.int16)


def _value(contraction: Contraction, device: Devices16) -> float:
    held = np.bincount(device, contraction.hypergraph.size, len(contraction.devices.kind))
    if (held > contraction.devices.limit).any():
        return float("inf")
    return float(device_loads(contraction.hypergraph, contraction.devices, device).max())


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
        share = min(share, 20_000.0)
    return int(min(share, 0.9 * progress.remaining_seconds * rate))
