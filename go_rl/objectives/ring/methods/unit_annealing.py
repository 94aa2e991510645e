"""Simulated annealing over the chips of units, compiled: a hundred thousand plans a second.

Kirkpatrick, Gelatt, Vecchi, "Optimization by simulated annealing", Science 1983. A move sends one
unit, with all that must follow or precede it, to the next chip or to that of a neighbour; loads and
traffic follow by differences, so that a plan costs what its move changes. The energy is the log of
a norm of all loads and links, whose power grows until it is T_max: a plan also gets better by what
the busiest chip does not show. Plans that are new bests are repaired, checked for memory and
evaluated as any other.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Int16, Int64

from go_rl.core import Budget, Plan, Problem, Progress, Status
from go_rl.objectives.common.incumbent import Incumbent, finish_plan
from go_rl.objectives.common.units import DROPPED
from go_rl.objectives.ring.methods.linear_dp import LinearDP
from go_rl.objectives.ring.methods.unit_moves import (
    UnitMoveState,
    anneal_moves,
    move_arrays,
    move_state,
)
from go_rl.objectives.ring.workspace import RingWorkspace, ring_workspace

HOTTEST, HOT, COLD = 4e-2, 5e-4, 1e-5
"""Range of the first temperature, drawn by the seed, and the last one, in units of log T_max. Hot
runs find other plans, cool ones better plans of the same kind; which is wanted depends on the
graph."""
SOFT, SHARP = 8.0, 80.0
"""First and last power of the norm."""
MOVES = 2_000
"""Moves of one call of the kernel, at one temperature."""
SQUEEZES = (1.0, 0.93, 0.85, 0.75, 0.6)
"""Shares of a chip's memory for weights, tried in turn when live tensors leave less room."""
FIRST_SHARE = 0.15
"""Largest share of the budget for the plan to start from."""


@dataclass(frozen=True, eq=False)
class UnitAnnealing:
    """`Optimizer`: annealing over units from a given plan, else from linear DP's or the compiler
    heuristic's; a sample is one move that was priced."""

    start: Int16[np.ndarray, "N"] | None = None
    """[N] chips to start from."""
    name: str = "unit-annealing"

    def with_start(self, plan: Plan) -> UnitAnnealing:
        """Return the same method, to start from a legal plan for the same problem."""
        return replace(self, start=plan.device)

    def optimize(self, problem: Problem, budget: Budget, seed: int) -> Plan:
        """Return the best plan visited; see `go_rl.core.Optimizer`."""
        workspace, progress = ring_workspace(problem), Progress(budget)
        incumbent = Incumbent(workspace, progress)
        device = self._first(workspace, incumbent, progress, seed)
        if device is not None and workspace.units.num_units and workspace.chips > 1:
            _anneal(workspace, incumbent, progress, device, seed)
        return finish_plan(workspace, incumbent, self.name, seed, progress)

    def _first(
        self, workspace: RingWorkspace, incumbent: Incumbent, progress: Progress, seed: int
    ) -> Int16[np.ndarray, "N"] | None:
        """Return the chips to start from, legal and evaluated; None where nothing was placed."""
        if self.start is not None:
            incumbent.offer(*workspace.repair(self.start, seed))
        else:
            share = Budget(
                None if not progress.budget.samples else max(1, progress.budget.samples // 6),
                None if not progress.budget.seconds else FIRST_SHARE * progress.budget.seconds,
            )
            plan = LinearDP().optimize(workspace.problem, share, seed)
            if plan.evaluation.status.ok:
                incumbent.offer(*workspace.repair(plan.device, seed), samples=max(1, plan.samples))
            else:
                incumbent.offer(
                    *workspace.repair(workspace.work_fill, seed), samples=max(1, plan.samples)
                )
        return None if incumbent.decisions is None else incumbent.decisions.device[0]


def _anneal(
    workspace: RingWorkspace,
    incumbent: Incumbent,
    progress: Progress,
    device: Int16[np.ndarray, "N"],
    seed: int,
) -> None:
    chip = _units_on(workspace, device)
    squeezes = iter(SQUEEZES)
    hot = HOT * (HOTTEST / HOT) ** np.random.default_rng(seed).random()
    arrays = move_arrays(workspace, next(squeezes))
    state, evaluated, attempts = move_state(arrays, chip, seed), np.inf, 0
    while not progress.spent and progress.share < 1.0:
        share = progress.share
        moves = int(min(MOVES, progress.remaining_samples))
        temperature = hot * (COLD / hot) ** share
        anneal_moves(arrays, state, moves, temperature, SOFT * (SHARP / SOFT) ** share)
        found = float(state.seconds[0])
        if found >= min(evaluated, incumbent.seconds) * (1 - 1e-9):
            progress.record(np.inf, moves)
            continue
        evaluated = found
        repaired = workspace.repair(_nodes_on(workspace, state), seed)
        incumbent.offer(*repaired, samples=moves)
        if repaired.evaluation.status is Status.OUT_OF_MEMORY:
            tighter = next(squeezes, None)
            if tighter is not None:
                arrays = move_arrays(workspace, tighter)
            attempts += 1
            state, evaluated = move_state(arrays, chip, _seed_of(seed, attempts)), np.inf


def _seed_of(seed: int, attempt: int) -> int:
    """Return the seed of one more attempt, which draws other moves than those before it."""
    return int(np.random.SeedSequence([seed, attempt]).generate_state(1)[0] >> 1)


def _units_on(workspace: RingWorkspace, device: Int16[np.ndarray, "N"]) -> Int64[np.ndarray, "U"]:
    """[U] chips of units."""
    of_node = workspace.unit_of_node
    held = of_node != DROPPED
    chip = np.zeros(workspace.units.num_units, np.int64)
    chip[of_node[held]] = device[held]
    return chip


def _nodes_on(workspace: RingWorkspace, state: UnitMoveState) -> Int16[np.ndarray, "N"]:
    """[N] chips of nodes in the best state."""
    unit_of = workspace.units.unit_of
    return workspace.nodes_of(np.where(unit_of >= 0, state.best[np.maximum(unit_of, 0)], 0))
