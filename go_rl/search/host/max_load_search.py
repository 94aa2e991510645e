"""Multilevel annealing for max-load, from the best splits of the interval DP.

Several walkers, each with its own seed, repeat: coarsen at random inside the current devices, then
anneal from the coarsest level down to single blocks, and keep the best. Walkers run on threads.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field, replace

import numpy as np
from jaxtyping import Int16

from go_rl.core import Budget, Objective, Plan, Problem, Progress
from go_rl.core.decisions import Decisions
from go_rl.objectives.host.hypergraph import Contraction
from go_rl.objectives.host.max_load_bounds import ROUNDING, fractional_bound
from go_rl.objectives.host.max_load_cut_bound import cut_bound
from go_rl.objectives.host.orders import block_orders
from go_rl.objectives.host.workspace import host_workspace
from go_rl.objectives.incumbent import finish_plan
from go_rl.search.host.coarsening import carry_up, coarsen
from go_rl.search.host.max_load_anneal import Schedule, anneal
from go_rl.search.host.max_load_dp import assignment_value, splits
from go_rl.search.host.walkers import (
    SAFETY,
    SETUP_SECONDS_A_PIN,
    STALE,
    Rounds,
    WalkerPace,
    walk,
)
from go_rl.search.host.warm_up import warm_up

START_SHARE = 0.5
"""Splits stop once they took this many times the time that is left."""
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
    bound_share: float = 0.3
    """Share of a time budget kept for proving the bound; none of a budget of samples only."""

    @property
    def name(self) -> str:
        """What tables call it."""
        return "local-search"

    def optimize(self, problem: Problem, budget: Budget, seed: int) -> Plan:
        """Return the best plan found; one sample is one split or one priced move.

        Kernels are compiled before the budget's clock starts.
        """
        warm_up(_compile, Objective.MAX_LOAD)
        return self._optimize(problem, budget, seed)

    def _optimize(self, problem: Problem, budget: Budget, seed: int) -> Plan:
        workspace, progress = host_workspace(problem), Progress(budget)
        contraction = workspace.contraction
        if workspace.infeasible is not None:
            return finish_plan(workspace, workspace.infeasible, self.name, seed, progress)
        starts = _starts(problem, contraction, seed, self.orders, progress)
        walkers = [
            _Walker(self, contraction, starts[i % len(starts)], np.random.default_rng([seed, i]))
            for i in range(self.walkers)
        ]
        device, bound, progress = self._search(contraction, walkers, progress, seed)
        if device is None:
            return finish_plan(workspace, workspace.gave_up, self.name, seed, progress)
        found = Decisions(device[contraction.block][None])
        return finish_plan(workspace, found, self.name, seed, progress, bound)

    def _search(
        self, contraction: Contraction, walkers: list[_Walker], progress: Progress, seed: int
    ) -> tuple[Devices16 | None, float, Progress]:
        """Walk, with the cut bound taken early so that a proven optimum ends the walk; then prove.

        Returns the best assignment, the bound, and the progress.
        """
        budget, low = progress.budget, fractional_bound(contraction)
        progress.raise_bound(low * (1.0 - ROUNDING))
        rounds, rng = Rounds(20_000, self.moves_a_cycle), np.random.default_rng(seed)
        timed = budget.seconds is not None
        for share in (FIRST_LEG, 1.0 - self.bound_share) if timed else (1.0,):
            walking = replace(progress, budget=_part(budget, share))
            best = walk(walkers, rounds, walking, rng)
            progress = replace(walking, budget=budget)
            if progress.proved or not np.isfinite(best.least):
                continue
            seconds = CUT_SHARE * progress.remaining_seconds if timed else CUT_SECONDS
            if seconds > 0:
                low = max(low, cut_bound(contraction, low, best.least, seconds))
                progress.raise_bound(low * (1.0 - ROUNDING))
        if not np.isfinite(best.least):
            return None, 0.0, progress
        low = progress.bound
        left = SAFETY * progress.remaining_seconds - EXACT_SETUP_SECONDS if timed else 0.0
        if left <= 0 or progress.proved:
            return best.best, low, progress
        known = best.least, best.best
        from go_rl.search.host.max_load_exact import solve_exactly  # OR-Tools: a fifth of a second

        exact = solve_exactly(contraction, low, known, left, os.cpu_count() or 1)
        if exact.device is not None:
            value = assignment_value(contraction, exact.device)
            if progress.record(value):
                return exact.device, max(low, exact.bound), progress
        return best.best, max(low, exact.bound), progress


def _compile(problem: Problem) -> None:
    MaxLoadSearch(orders=4, moves_a_cycle=100)._optimize(problem, Budget(samples=4_000), 0)


@dataclass
class _Walker:
    """One search: where it is, the best it saw, and how fast it moves."""

    settings: MaxLoadSearch
    contraction: Contraction
    device: Devices16
    rng: np.random.Generator
    best: Devices16 = field(init=False)
    least: float = field(init=False)
    pace: WalkerPace = field(init=False)
    stale: int = 0

    def __post_init__(self) -> None:
        pins = len(self.contraction.hypergraph.pins)
        self.pace = WalkerPace(1e6, SETUP_SECONDS_A_PIN * pins)
        self.best, self.least = self.device.copy(), assignment_value(self.contraction, self.device)

    def cycle(self, moves: int, depth: float) -> int:
        """Coarsen, anneal every level from the coarsest down; returns the moves made."""
        clock, rng = [time.perf_counter()], self.rng
        levels = coarsen(self.contraction.hypergraph, self.device, rng, depth)[: moves - 1]
        clock.append(time.perf_counter())
        graphs = [self.contraction.hypergraph, *(graph for graph, _ in levels)]
        device = self.device
        for _, cluster in levels:
            device = carry_up(device, cluster)
        hot = self.settings.hot * 10.0 ** (-1.5 * rng.random())
        share = max(1, moves // len(graphs))
        for level in range(len(graphs) - 1, -1, -1):
            schedule = Schedule(share, hot, min(self.settings.cold, hot))
            last = device.copy()
            best, value = anneal(graphs[level], self.contraction.devices, last, schedule, rng)
            device = best if np.isfinite(value) else last
            if level > 0:
                device = device[levels[level - 1][1]]
            hot = max(self.settings.cold, 0.5 * hot)
        self._accept(device)
        made = share * len(graphs)
        self.pace.measure(made, clock[1] - clock[0], time.perf_counter() - clock[1])
        return made

    def _accept(self, device: Devices16) -> None:
        value = assignment_value(self.contraction, device)
        self.stale += 1
        if value < self.least:
            self.best, self.least, self.stale = device.copy(), value, 0
        self.device = device if self.stale < STALE else self.best.copy()


def _starts(
    problem: Problem, contraction: Contraction, seed: int, count: int, progress: Progress
) -> list[Devices16]:
    """Distinct splits of several orders, best first; any assignment where none is legal."""
    found: dict[bytes, tuple[float, Devices16]] = {}
    orders = block_orders(problem, contraction, seed, count)
    for device in splits(contraction, orders, START_SLACK):
        value = assignment_value(contraction, device)
        progress.record(value)
        found[device.tobytes()] = (value, device)
        if progress.spent or progress.wall_seconds > START_SHARE * progress.remaining_seconds:
            break
    if not found:
        device = _somewhere(contraction)
        progress.record(assignment_value(contraction, device))
        return [device]
    return [device for _, device in sorted(found.values(), key=lambda pair: pair[0])]


def _part(budget: Budget, share: float) -> Budget:
    """The budget with only ``share`` of its seconds."""
    return budget if budget.seconds is None else replace(budget, seconds=share * budget.seconds)


def _somewhere(contraction: Contraction) -> Devices16:
    """Each block on the device that runs it fastest, whatever the memory."""
    work = contraction.hypergraph.work[contraction.devices.kind].T
    return np.where(contraction.hypergraph.allowed, work, np.inf).argmin(axis=1).astype(np.int16)
