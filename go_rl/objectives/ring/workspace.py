"""Workspace of ring optimizers, built once for a problem: solver, pricer, units, bound."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int, Int16, Int32

from go_rl.core import Evaluation, Fidelity, Problem
from go_rl.core.decisions import Decisions, Legalized, Proposals, Scored
from go_rl.core.evaluation import STATUS_CODES
from go_rl.objectives.common.units import DROPPED, RingUnits, bound_units, ring_units
from go_rl.objectives.common.workspace import PlanningWorkspace, first_usable
from go_rl.objectives.ring.assignment import RingAssignment
from go_rl.objectives.ring.bounds import ring_bound
from go_rl.objectives.ring.greedy import greedy_fills, topological_fill, work_share
from go_rl.objectives.ring.linear_cuts import LinearCuts, UnequalChips
from go_rl.objectives.ring.simulate.pricing import RingPricer
from go_rl.solvers import RingSolver, ring_instance

FAITHFUL = 4.0
"""Log-odds that FIX loses for each chip of distance from a proposal that it cannot keep."""


class Repaired(NamedTuple):
    """One proposal made legal and evaluated, as `Incumbent.offer` takes it."""

    decisions: Decisions | None
    """A batch of one; None: nothing legal was found."""
    evaluation: Evaluation
    fidelity: Fidelity


class RingWorkspace(PlanningWorkspace):
    """Solver, pricer, units and bound of one ring problem; parts are built when first used."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem

    @cached_property
    def solver(self) -> RingSolver:
        """FIX and SAMPLE."""
        return RingSolver(self.problem)

    @cached_property
    def pricer(self) -> RingPricer:
        """T_max of plans."""
        return RingPricer(self.problem)

    @cached_property
    def units(self) -> RingUnits:
        """Blocks as units of work, priced on the slowest chip kind."""
        return ring_units(self.solver.instance)

    @cached_property
    def unequal_chips(self) -> UnequalChips | None:
        """Work of the units and room on each kind of chip; None where chips are alike."""
        problem, capacity = self.problem, self.solver.instance.net.capacity
        kind = problem.device_kind
        if len(problem.seconds) == 1:
            return None
        held = self.unit_of_node != DROPPED
        work = np.zeros((len(problem.seconds), self.units.num_units))
        never = 1e6 * self.units.serial_seconds  # of what a kind cannot run; sums stay finite
        for row, seconds in zip(work, problem.seconds, strict=True):
            able = np.where(np.isfinite(seconds[held]), seconds[held], never)
            np.add.at(row, self.unit_of_node[held], able)
        least = [capacity[kind == k].min() for k in range(len(work))]
        return UnequalChips(kind, work, np.array(least, np.float64) / max(capacity.min(), 1))

    def cuts(self, order: Int32[np.ndarray, "U"]) -> LinearCuts:
        """Return the cuts of a topological order of the units."""
        return LinearCuts(self.units, order, self.problem.rules.triangle, self.unequal_chips)

    @cached_property
    def unit_of_node(self) -> Int32[np.ndarray, "N"]:
        """[N] unit of each node, or `DROPPED`."""
        block = self.solver.instance.block_of
        held = np.where(block >= 0, self.units.unit_of[np.maximum(block, 0)], DROPPED)
        return held.astype(np.int32)

    @cached_property
    def relaxed(self) -> RingUnits:
        """Units for proofs: what no legal plan can split or put out of order."""
        return bound_units(self.solver.instance)

    @cached_property
    def bound(self) -> float:
        """A proven lower bound on T_max, quick to compute."""
        return ring_bound(self.solver.instance)

    @property
    def target(self) -> float:
        """The bound that a value must meet to be the optimum."""
        return self.bound

    @property
    def chips(self) -> int:
        """Number of chips k."""
        return self.problem.hardware.num_devices

    @property
    def weight_limit(self) -> float:
        """Bytes of weights that every chip can hold; inf when memory is not checked."""
        return float(self.solver.instance.net.capacity.min()) if self.problem.memory else np.inf

    def nodes_of(self, stage: Int[np.ndarray, "*B M"]) -> Int16[np.ndarray, "*B N"]:
        """Spread [..., M] chips of blocks over [..., N] nodes; copied nodes get 0."""
        block_of = self.solver.instance.block_of
        if not stage.shape[-1]:
            return np.zeros((*stage.shape[:-1], len(block_of)), np.int16)
        held = stage[..., np.maximum(block_of, 0)]
        return np.where(block_of >= 0, held, 0).astype(np.int16)

    def near(self, proposal: Int16[np.ndarray, "*B N"]) -> Float64[np.ndarray, "*B N k"]:
        """Return [..., N, k] log-odds that fall with the distance from a proposal's chips."""
        return -FAITHFUL * np.abs(np.arange(self.chips) - proposal[..., None]).astype(np.float64)

    def prepare(self) -> None:
        """Build the solver, which `legalize` needs."""
        _ = self.solver

    def legalize(self, proposals: Proposals, seed: int = 0) -> Legalized:
        """FIX the devices of proposals, or SAMPLE from log-probabilities where there are none."""
        wish, weights = proposals.device, proposals.log_probs
        if wish is None:
            found = self.solver.sample(weights, seed=seed)
        else:
            found = self.solver.fix(wish, weights, seed)

        def row(proposed: np.ndarray | None, i: int) -> np.ndarray | None:
            return None if proposed is None else proposed[i % len(proposed)]

        fidelity = tuple(
            self.solver.fidelity(found, i, row(wish, i), row(weights, i))
            for i in range(len(found.status))
        )
        return Legalized(Decisions(found.device), found.status, found.detail, fidelity)

    def repair(
        self, proposal: Int16[np.ndarray, "N"], seed: int = 0, nodewise: bool = False
    ) -> Repaired:
        """FIX one proposal and evaluate it; nodes that must move prefer nearby chips."""
        found = self.solver.fix(proposal[None], self.near(proposal)[None], seed, nodewise)
        fidelity = self.solver.fidelity(found, 0, proposal)
        status = STATUS_CODES[int(found.status[0])]
        if not status.ok:
            return Repaired(None, self.failed(status, found.detail), fidelity)
        decisions = Decisions(found.device)
        return Repaired(decisions, self.detail(decisions), fidelity)

    def assignment(self) -> RingAssignment:
        return RingAssignment(ring_instance(self.problem))

    @property
    def work_fill(self) -> Int16[np.ndarray, "N"]:
        """[N] the topological fill balanced by work alone, not yet legal."""
        return topological_fill(work_share(self.problem, self.pricer.replicated), self.chips)

    def greedy(self) -> Iterator[Repaired]:
        """Yield the compiler heuristic's fills, legal and evaluated, up to the first that fits."""
        for proposal in greedy_fills(self.problem, self.pricer.replicated):
            found = self.repair(proposal)
            yield found
            if found.evaluation.status.ok or not self.problem.memory:
                return

    @cached_property
    def reference(self) -> Decisions:
        """The compiler heuristic's plan; everything on one chip where it places nothing."""
        return first_usable(self.problem, self.greedy())

    @cached_property
    def reference_seconds(self) -> float:
        """T_max of `reference`; where it fails, of everything on one chip."""
        seconds = float(self.evaluate(self.reference).seconds[0])
        return seconds if np.isfinite(seconds) else float(self.problem.work.sum())

    @property
    def infeasible(self) -> Evaluation | None:
        """None: the solver says why nothing can be placed when it is asked."""
        return None

    def evaluate(self, decisions: Decisions) -> Scored:
        """Price a batch of plans."""
        return Scored(decisions, *self.pricer.price(decisions.device))

    def detail(self, decisions: Decisions, row: int = 0) -> Evaluation:
        """Price one plan in full."""
        return self.pricer.evaluate(decisions.device[row])

    def with_copies(self, decisions: Decisions) -> Decisions:
        """Return one plan with its copies where their readers are."""
        home, present = self.pricer.place(decisions.device[0])
        return replace(decisions, device=home[None], present=present[None])


@lru_cache(maxsize=4)
def ring_workspace(problem: Problem) -> RingWorkspace:
    """Return the workspace of a problem, shared by all optimizers that work on it."""
    return RingWorkspace(problem)
