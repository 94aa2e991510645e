"""Simulated annealing over device, scheduling priority and fusion priority of every node.

Kirkpatrick, Gelatt, Vecchi, "Optimization by simulated annealing", Science 1983. Energy is the log
of the iteration's seconds, so temperatures have no unit. A plan that does not fit lies above all
that do, the higher the more bytes are missing, so that a search that starts there finds its way
down.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from statistics import median

import numpy as np
from jaxtyping import Int64

from go_rl.core import Budget, OpGraph, Plan, Problem, Progress, Status
from go_rl.core.decisions import Decisions, Scored
from go_rl.core.evaluation import STATUS_CODES
from go_rl.graphs.cutting.fusion import NO_FUSION
from go_rl.objectives.common.incumbent import Incumbent, finish_plan
from go_rl.objectives.makespan.choices import softly_placed
from go_rl.objectives.makespan.methods.moves import Moves, MoveState
from go_rl.objectives.makespan.workspace import LEAST, MakespanWorkspace, makespan_workspace

HOT, COLD = 0.3, 0.01
"""First and last temperature, in units of the median ascent that recent moves would be."""
MEMORY = 100
"""Ascents remembered."""
TOO_LARGE = 100.0
"""Energy added to a plan that does not fit."""
FORBIDDEN = 1e6
"""Energy of a plan that cannot run."""


@dataclass(frozen=True, eq=False)
class MakespanAnnealing:
    """`Optimizer`: simulated annealing from a given plan, else from the default (fused greedily
    where that is better and fusion is asked for)."""

    start: Plan | None = None
    """Plan to start from; it must be one for the same problem."""
    cooling: Budget | None = None
    """Budget over which the temperature falls; None: the search's own."""
    name: str = "annealing"

    def with_start(self, plan: Plan) -> MakespanAnnealing:
        """Return the same method, to start from a legal plan for the same problem."""
        return replace(self, start=plan)

    def with_cooling(self, budget: Budget) -> MakespanAnnealing:
        """Return the same method, its cooling tied to ``budget``
        (`go_rl.core.optimizer.Cooled`)."""
        return replace(self, cooling=budget)

    def optimize(self, problem: Problem, budget: Budget, seed: int) -> Plan:
        """Return the best plan visited; see `go_rl.core.Optimizer`."""
        workspace, progress = makespan_workspace(problem), Progress(budget)
        incumbent = Incumbent(workspace, progress)
        if not incumbent.hopeless:
            self._anneal(workspace, incumbent, progress, np.random.default_rng(seed))
        return finish_plan(workspace, incumbent, self.name, seed, progress)

    def _anneal(
        self,
        workspace: MakespanWorkspace,
        incumbent: Incumbent,
        progress: Progress,
        rng: np.random.Generator,
    ) -> None:
        moves = Moves(workspace)
        state, energy = None, np.inf
        for plan, proposal in self._starts(workspace):
            if state is not None and progress.spent:
                break
            value = _priced(workspace, incumbent, plan)
            if state is None or value < energy:
                state, energy = proposal, value
        ascents: deque[float] = deque(maxlen=MEMORY)
        while state is not None and moves.any and not progress.spent:
            # Geometric cooling: T = HOT (COLD / HOT)^(share of the budget).
            temperature = HOT * (COLD / HOT) ** progress.share_of(self.cooling)
            proposal = moves.draw(state, rng)
            after = _priced(workspace, incumbent, _plan_of(workspace, proposal))
            if energy < after < energy + TOO_LARGE / 2:
                ascents.append(after - energy)
            # Temperatures count in median rises of late, for energies differ between graphs.
            scale = median(ascents) if ascents else 1.0
            # Metropolis: accept with probability min(1, exp((E - E') / (T scale))).
            if rng.random() < np.exp(min(0.0, (energy - after) / (temperature * scale))):
                state, energy = proposal, after

    def _starts(self, workspace: MakespanWorkspace) -> list[tuple[Decisions, MoveState]]:
        """Plans to begin with and the states that stand for them."""
        if self.start is not None:
            return [_given(workspace, self.start)]
        zero = np.zeros(workspace.num_nodes, np.int64)
        device = softly_placed(workspace.choices, workspace.reference.device)[0]
        state = MoveState(device, zero, zero + NO_FUSION)
        found = [(_plan_of(workspace, state), state)]
        if "fusion" in workspace.problem.decisions:
            fused = MoveState(device, zero, zero + 1)
            found.append((_plan_of(workspace, fused), fused))
        return found


def _given(workspace: MakespanWorkspace, plan: Plan) -> tuple[Decisions, MoveState]:
    """A plan exactly as it is, and the nearest state."""
    decisions = workspace.problem.decisions
    leader = plan.fusion_group if "fusion" in decisions else None
    priority = plan.priority if "schedule" in decisions else None
    exact = Decisions(
        plan.device[None],
        None if priority is None else priority[None],
        None if leader is None else leader[None],
    )
    zero = np.zeros(workspace.num_nodes, np.int64)
    fusion = zero + NO_FUSION if leader is None else _joined(workspace.problem.graph, leader)
    state = MoveState(plan.device.copy(), zero if priority is None else priority, fusion)
    return exact, state


def _joined(graph: OpGraph, leader: Int64[np.ndarray, "N"]) -> Int64[np.ndarray, "N"]:
    """[N] fusion priorities: 1 for a producer that shares a kernel with a consumer."""
    fusion = np.full(graph.num_nodes, NO_FUSION, np.int64)
    fusion[graph.senders[leader[graph.senders] == leader[graph.receivers]]] = 1
    return fusion


def _plan_of(workspace: MakespanWorkspace, state: MoveState) -> Decisions:
    fusion = state.fusion[None] if (state.fusion > NO_FUSION).any() else None
    priority = state.priority[None] if state.priority.any() else None
    return workspace.decisions(state.device[None], priority, fusion)


def _priced(workspace: MakespanWorkspace, incumbent: Incumbent, plan: Decisions) -> float:
    """Count a plan as a sample and return its energy."""
    status, seconds, trace = workspace.pricer.trace(plan)
    code = np.array([STATUS_CODES.index(status)], np.int8)
    incumbent.offer_scored(Scored(plan, np.array([seconds if status.ok else np.inf]), code))
    if not np.isfinite(seconds):
        return FORBIDDEN
    energy = float(np.log(max(seconds, LEAST)))
    if status is Status.OUT_OF_MEMORY:
        over = trace.peak / workspace.pricer.arrays.capacity - 1.0
        energy += TOO_LARGE + float(np.maximum(over, 0.0).sum())
    return energy
