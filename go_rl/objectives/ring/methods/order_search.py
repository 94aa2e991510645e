"""`OrderSearch`: the cross-entropy method over weights that mix reference orders.

An order is worth its best cuts: one chip after the other (`LinearCuts`, exact for the order), and
under the triangle rule also pieces of several chips (`SideBySide`). Few weights say how the whole
graph is ordered, so that a search of some hundred orders moves all units at once, where annealing
moves a few; and weights that are good on one graph are worth a try on the next.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float32, Float64, Int32

from go_rl.core import Budget, Plan, Problem, Progress
from go_rl.core.stopping import ending_early
from go_rl.objectives.common.cross_entropy import BATCH, KEPT, CrossEntropy
from go_rl.objectives.common.incumbent import Incumbent, finish_plan
from go_rl.objectives.ring.methods.linear_dp import SQUEEZE, loosened
from go_rl.objectives.ring.order_weights import first_weights, order_columns, weighted_order
from go_rl.objectives.ring.side_by_side import MOST_UNITS, SideBySide
from go_rl.objectives.ring.workspace import RingWorkspace, ring_workspace
from go_rl.runtime.threads import on_threads

AT_ONCE = 4
"""Orders that are cut side by side, all with the limit that was known before."""
REPAIRED = 1.02
"""An order whose cuts come this near to the best plan, in seconds, is repaired and evaluated."""
COARSE = 2e-3
"""Relative step at which the bisection over T of an order stops."""
NEAR = 1.05
"""Pieces of several chips, which take long to find, are looked for within this many times the
seconds of the best order so far."""


@dataclass(frozen=True, eq=False)
class OrderSearch:
    """`Optimizer`: weights to begin with, then the cross-entropy method from the best of them; a
    sample is one order."""

    first: Float32[np.ndarray, "K W"] | None = None
    """[K, W] weights that are tried first; None: the reference orders, then random mixtures."""
    memory: dict[str, Any] | None = None
    """State of an earlier search to go on from, and to be kept up to date; None: begin anew."""
    name: str = "order-search"

    def with_memory(self, memory: dict[str, Any]) -> OrderSearch:
        """Return the same method, which goes on where ``memory`` says (`Resumable`)."""
        return replace(self, memory=memory)

    def optimize(self, problem: Problem, budget: Budget, seed: int) -> Plan:
        """Return the best plan; see `go_rl.core.Optimizer`."""
        workspace, progress = ring_workspace(problem), Progress(budget)
        incumbent = Incumbent(workspace, progress)
        if workspace.solver.feasible_so_far and workspace.units.num_units:
            memory = {} if self.memory is None else self.memory
            if "search" not in memory:
                memory["search"] = OrderSearchState(workspace, self._search(seed), seed)
            state: OrderSearchState = memory["search"]
            with ending_early():
                while not progress.spent:
                    state.step(incumbent, progress)
        else:
            empty = np.zeros(problem.graph.num_nodes, np.int16)
            incumbent.offer(*workspace.repair(empty))
        return finish_plan(workspace, incumbent, self.name, seed, progress)

    def _search(self, seed: int) -> CrossEntropy:
        plain = first_weights(BATCH, seed)
        return CrossEntropy(
            plain if self.first is None else np.concatenate([self.first, plain]), seed
        )


@dataclass(eq=False)
class OrderSearchState:
    """One search on one problem."""

    workspace: RingWorkspace
    search: CrossEntropy
    seed: int
    columns: Float64[np.ndarray, "U W"] = field(init=False)
    """[U, W] columns that the weights count."""
    weight_limit: float = field(init=False)
    """Bytes of weights that a chip may hold; less where plans ran out of memory, half the way back
    where no stages keep it."""

    def __post_init__(self) -> None:
        self.columns = order_columns(self.workspace.units)
        self.weight_limit = self.workspace.weight_limit

    def step(self, incumbent: Incumbent, progress: Progress) -> None:
        """Try the next few weights, at most as many as the budget has."""
        if self.search.settled:
            self.search.begin_anew()
        known = len(self.search.finds.seconds) > 0
        size = int(min(AT_ONCE if known else 1, max(progress.remaining_samples, 1)))
        weights = self.search.ask()[:size]
        seconds = np.full(len(weights), np.inf)
        cuts = cut_orders(self.workspace, self.columns, weights, self.limits())
        for i, (value, stage) in enumerate(cuts):
            seconds[i] = self._priced(value, stage, incumbent, progress)
        self.search.tell(seconds)

    def limits(self) -> CutLimits:
        """Return what a plan that the search still keeps has at most."""
        kept, serial = self.search.finds.seconds, self.workspace.units.serial_seconds
        allowed = min(float(kept[KEPT - 1]) if len(kept) >= KEPT else np.inf, serial)
        wide = min(allowed, NEAR * float(kept.min(initial=np.inf)))
        return CutLimits(allowed, wide, self.weight_limit)

    def _priced(
        self,
        value: float,
        stage: Int32[np.ndarray, "U"] | None,
        incumbent: Incumbent,
        progress: Progress,
    ) -> float:
        """Count an order; return its seconds, those of the repaired plan where it was repaired."""
        if stage is None or value >= incumbent.seconds * REPAIRED:
            progress.record(np.inf)
            if not np.isfinite(self.search.finds.seconds.min(initial=np.inf)):
                self.weight_limit = loosened(self.weight_limit, self.workspace.weight_limit)
            return value
        workspace = self.workspace
        repaired = workspace.repair(workspace.nodes_of(stage[workspace.units.unit_of]), self.seed)
        incumbent.offer(*repaired)
        if not repaired.evaluation.status.ok:
            self.weight_limit *= SQUEEZE
        return repaired.evaluation.seconds


class CutLimits(NamedTuple):
    """Most seconds and bytes of the cuts that are looked for."""

    allowed: float
    """Seconds of stages of one chip each."""
    allowed_wide: float
    """Seconds of pieces of several chips."""
    weight: float
    """Bytes of weights a chip, the smallest where they differ."""

    @classmethod
    def within(cls, workspace: RingWorkspace, most: float = np.inf) -> CutLimits:
        """Return those of plans of at most this many seconds."""
        most = min(most, workspace.units.serial_seconds)
        return cls(most, most, workspace.weight_limit)


def cut_orders(
    workspace: RingWorkspace,
    columns: Float64[np.ndarray, "U W"],
    weights: Float32[np.ndarray, "B W"],
    limits: CutLimits,
) -> list[tuple[float, Int32[np.ndarray, "U"] | None]]:
    """Return the seconds and [U] stages of the best cuts of the order of each of [B, W] weights;
    inf and None where none are within the limits. The same for any number of threads."""
    found: list[tuple[float, Int32[np.ndarray, "U"] | None]] = [(np.inf, None)] * len(weights)
    _ = workspace.bound, workspace.unequal_chips  # built once, before threads ask for them

    def share(rows: range) -> None:
        for i in rows:
            order = weighted_order(workspace.units, columns, weights[i])
            found[i] = best_cuts(workspace, order, *limits)

    on_threads(share, len(weights))
    return found


def best_cuts(
    workspace: RingWorkspace,
    order: Int32[np.ndarray, "U"],
    allowed: float,
    allowed_wide: float,
    weight: float,
) -> tuple[float, Int32[np.ndarray, "U"] | None]:
    """Return the seconds and [U] stages of the best cuts of a topological order [U] of the units;
    inf and None if none are within the `CutLimits`."""
    problem, cuts = workspace.problem, workspace.cuts(order)
    exactly, chips = problem.all_chips, workspace.chips
    high, stage = cuts.best(workspace.bound, allowed, chips, weight, exactly, COARSE)
    if problem.rules.triangle and not exactly and workspace.units.num_units <= MOST_UNITS:
        least = allowed_wide if stage is None else min(allowed_wide, high * (1 - COARSE))
        wide, several = SideBySide(cuts, chips).best(workspace.bound, least, weight, COARSE)
        if several is not None:
            return wide, several
    return (np.inf, None) if stage is None else (high, stage)
