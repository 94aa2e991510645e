"""Simulated annealing over orders: every order is worth its best cuts.

Kirkpatrick, Gelatt, Vecchi, "Optimization by simulated annealing", Science 1983, over the places of
units on a line; list scheduling by place makes them a topological order, and `LinearCuts` (exact
for the order) its stages. A move shifts the places of a few units, of all that one unit needs or
feeds within a stretch, or swaps the looks of two neighbouring stages by noise. Most orders are
refused by one sweep of the cuts: they cannot be had within the seconds that the temperature allows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float64, Int16, Int32

from go_rl.core import Budget, Plan, Problem, Progress
from go_rl.objectives.common.incumbent import Incumbent, finish_plan
from go_rl.objectives.common.units import DROPPED, RingUnits
from go_rl.objectives.ring.orders import candidate_orders, list_order, positions
from go_rl.objectives.ring.workspace import RingWorkspace, ring_workspace

HOT, COLD = 0.03, 0.0003
"""First and last temperature, in units of log T_max."""
FIRST_ORDERS = 40
"""Orders of `candidate_orders` that are cut before the best of them is annealed."""
REPAIRED = 1.02
"""A cut order this near to the best plan, in seconds, is repaired and evaluated."""


@dataclass(frozen=True, eq=False)
class OrderAnnealing:
    """`Optimizer`: annealing over orders from a given plan, else from the best candidate order; a
    sample is one order."""

    start: Int16[np.ndarray, "N"] | None = None
    """[N] chips to start from."""
    name: str = "order-annealing"

    def with_start(self, plan: Plan) -> OrderAnnealing:
        """Return the same method, to start from a legal plan for the same problem."""
        return replace(self, start=plan.device)

    def optimize(self, problem: Problem, budget: Budget, seed: int) -> Plan:
        """Return the best plan; see `go_rl.core.Optimizer`."""
        workspace, progress = ring_workspace(problem), Progress(budget)
        incumbent = Incumbent(workspace, progress)
        if workspace.solver.feasible_so_far and workspace.units.num_units:
            _OrderSearch(workspace, progress, incumbent, seed).run(self.start)
        else:
            empty = np.zeros(problem.graph.num_nodes, np.int16)
            incumbent.offer(*workspace.repair(empty))
        return finish_plan(workspace, incumbent, self.name, seed, progress)


class _OrderSearch:
    """One annealing run."""

    def __init__(
        self, workspace: RingWorkspace, progress: Progress, incumbent: Incumbent, seed: int
    ) -> None:
        self.workspace, self.progress, self.incumbent = workspace, progress, incumbent
        self.units: RingUnits = workspace.units
        self.seed, self.rng = seed, np.random.default_rng(seed)
        self.repaired_at = np.inf
        self.stage = np.zeros(self.units.num_units, np.int32)

    def run(self, start: Int16[np.ndarray, "N"] | None) -> None:
        place, seconds = self._first(start)
        while place is not None and not self.progress.spent and self.progress.share < 1.0:
            temperature = HOT * (COLD / HOT) ** self.progress.share
            allowed = seconds * self.rng.random() ** -temperature
            proposal = self._moved(place)
            found = self._cut(proposal, allowed)
            if found is not None:
                place, seconds, self.stage = proposal, *found

    def _first(
        self, start: Int16[np.ndarray, "N"] | None
    ) -> tuple[Float64[np.ndarray, "U"] | None, float]:
        """Return the places to begin with and the seconds of their cuts."""
        if start is not None:
            self.incumbent.offer(*self.workspace.repair(start, self.seed))
        places = [self._places_of(start)] if start is not None else []
        orders = candidate_orders(self.units, self.seed)
        best, seconds = None, self.units.serial_seconds
        for i in range(FIRST_ORDERS):
            if self.progress.spent or (places and i > 0):
                break
            place = places[0] if places else positions(next(orders))
            found = self._cut(place, seconds)
            if found is not None:
                best, seconds, self.stage = place, *found
        return best, seconds

    def _places_of(self, device: Int16[np.ndarray, "N"]) -> Float64[np.ndarray, "U"]:
        """[U] places by chip, then as given."""
        of_node = self.workspace.unit_of_node
        held = of_node != DROPPED
        chip = np.zeros(self.units.num_units)
        chip[of_node[held]] = device[held]
        order = np.lexsort((np.arange(self.units.num_units), chip))
        return positions(order.astype(np.int32))

    def _cut(
        self, place: Float64[np.ndarray, "U"], allowed: float
    ) -> tuple[float, Int32[np.ndarray, "U"]] | None:
        """Count an order; return the seconds and stages of its cuts if they are allowed."""
        workspace, problem = self.workspace, self.workspace.problem
        cuts = workspace.cuts(list_order(self.units, place))
        seconds, stage = cuts.best(
            workspace.bound * 0.999, allowed, workspace.chips, workspace.weight_limit,
            problem.all_chips, 1e-3,
        )  # fmt: skip
        if stage is None:
            self.progress.record(np.inf)
            return None
        if seconds < min(self.repaired_at, self.incumbent.seconds * REPAIRED):
            self.repaired_at = seconds * (1 - 1e-6)
            proposal = workspace.nodes_of(stage[self.units.unit_of])
            self.incumbent.offer(*workspace.repair(proposal, self.seed))
        else:
            self.progress.record(np.inf)
        return seconds, stage

    def _moved(self, place: Float64[np.ndarray, "U"]) -> Float64[np.ndarray, "U"]:
        """Return [U] places with some units shifted."""
        rng, count = self.rng, len(place)
        stages = max(2.0, float(self.stage.max()) + 1)
        kind = rng.random()
        moved = place.copy()
        if kind < 0.5:  # a unit with its neighbours, towards the other end of a stage
            unit = self._unit()
            near = self._cone(unit, int(rng.integers(1, 12)))
            moved[near] += rng.normal(0.0, 1.0) / stages
        elif kind < 0.75:  # noise on one stretch
            middle, width = place[self._unit()], rng.exponential(1.0) / stages
            inside = np.abs(place - middle) < width
            moved[inside] += rng.normal(0.0, 0.5 * width, int(inside.sum()))
        else:  # single units
            some = rng.integers(count, size=1 + int(rng.exponential(3.0)))
            moved[some] += rng.normal(0.0, 0.5, len(some)) / stages
        return moved

    def _unit(self) -> int:
        """A unit, half of the time of the busiest stage."""
        if self.rng.random() < 0.5:
            loads = np.bincount(self.stage, self.units.work)
            there = np.flatnonzero(self.stage == int(np.argmax(loads)))
            return int(self.rng.choice(there))
        return int(self.rng.integers(self.units.num_units))

    def _cone(self, unit: int, size: int) -> list[int]:
        """A unit and up to ``size`` units that follow from it, or that it needs."""
        units, forward = self.units, self.rng.random() < 0.5
        ptr, ids = (units.succ_ptr, units.succ) if forward else (units.pred_ptr, units.pred)
        found, queue = {unit}, [unit]
        while queue and len(found) < size:
            v = queue.pop(0)
            for w in ids[ptr[v] : ptr[v + 1]].tolist():
                if w not in found:
                    found.add(w)
                    queue.append(w)
        return sorted(found)
