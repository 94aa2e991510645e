"""Local search on max-load: starts, moves and values of assignments, and proofs of the bound."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Int32

from go_rl.core import Budget, Progress
from go_rl.objectives.host.hypergraph import Contraction, Hypergraph
from go_rl.objectives.host.max_load_bounds import ROUNDING, fractional_bound
from go_rl.objectives.host.max_load_cut_bound import cut_bound
from go_rl.objectives.host.orders import block_orders
from go_rl.objectives.host.workspace import HostWorkspace
from go_rl.search.host.max_load_anneal import Schedule, anneal
from go_rl.search.host.max_load_dp import assignment_value, splits
from go_rl.search.host.walkers import (
    SAFETY,
    START_SHARE,
    BlockDevices,
    Start,
    Walker,
    WalkSettings,
    priced,
    walk,
)

MAX_LOAD_SETTINGS = WalkSettings(
    orders=8, moves_a_cycle=200_000, hot=0.05, cold=2e-4, decades=1.5, moves_a_second=1e6
)
PROBE_MOVES = 20_000
"""Moves of the first round of a walker, which measures its pace."""
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


class MaxLoadLandscape:
    """`Landscape` of max-load."""

    def __init__(self, workspace: HostWorkspace) -> None:
        self.problem, self.contraction = workspace.problem, workspace.contraction

    def starts(self, seed: int, count: int, progress: Progress) -> list[Start]:
        """Distinct splits of several orders, best first; any assignment where none is legal."""
        found: dict[bytes, Start] = {}
        orders = block_orders(self.problem, self.contraction, seed, count)
        for device in splits(self.contraction, orders, START_SLACK):
            found[device.tobytes()] = priced(self, device, progress)
            if progress.spent or progress.wall_seconds > START_SHARE * progress.remaining_seconds:
                break
        if not found:
            return [priced(self, _fastest(self.contraction), progress)]
        return sorted(found.values(), key=lambda start: start[0])

    def value(self, device: BlockDevices) -> float:
        """Return the largest load of an assignment of blocks, inf when it overfills a memory."""
        return assignment_value(self.contraction, device)

    def anneal(
        self,
        hypergraph: Hypergraph,
        owner: Int32[np.ndarray, "N"],
        device: BlockDevices,
        schedule: Schedule,
        rng: np.random.Generator,
    ) -> tuple[BlockDevices, float]:
        """Run the kernel of that name; the nodes behind a block do not matter."""
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
            best = walk(walkers, PROBE_MOVES, walking, rng)
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
        from go_rl.search.host.max_load_exact import solve_exactly  # OR-Tools: a fifth of a second

        known = best.least, best.best
        exact = solve_exactly(self.contraction, low, known, left, os.cpu_count() or 1)
        low, device = max(low, exact.bound), best.best
        if exact.device is not None and progress.record(self.value(exact.device)):
            device = exact.device
        return device, low, progress


def _part(budget: Budget, share: float) -> Budget:
    """The budget with only ``share`` of its seconds."""
    return budget if budget.seconds is None else replace(budget, seconds=share * budget.seconds)


def _fastest(contraction: Contraction) -> BlockDevices:
    """Each block on the device that runs it fastest, whatever the memory."""
    work = contraction.hypergraph.work[contraction.devices.kind].T
    return np.where(contraction.hypergraph.allowed, work, np.inf).argmin(axis=1).astype(np.int16)
