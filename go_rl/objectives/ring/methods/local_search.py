"""Annealed local search on a ring: a hundred thousand legal partitions a second.

`Annealing` has every move repaired by the solver, as in the paper; here moves are cheap, keep to
the data flow by themselves, and are refused where they break another rule. See `relocation`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Int16

from go_rl.core import Budget, Plan, Problem, Progress, Status
from go_rl.objectives.common.incumbent import Incumbent, finish_plan
from go_rl.objectives.ring.methods.linear_dp import SQUEEZE
from go_rl.objectives.ring.methods.relocation import BEST, ILLEGAL, SCORE, new_walk, walk
from go_rl.objectives.ring.workspace import RingWorkspace, ring_workspace

HOT, COLD = 0.02, 0.0002
"""First and last temperature, in units of log T_max; both scaled by a factor of the seed."""
SPREAD = 3.0
"""Largest such factor: what one temperature cannot leave, another can."""
SHORTEST, LONGEST = 16, 1024
"""Moves of the first piece and of the longest: after each the budget is looked at, and a better
partition is priced."""

REFUSALS = 8
"""Better partitions in a row whose live tensors did not fit, after which weights get less room."""


@dataclass(frozen=True, eq=False)
class RingLocalSearch:
    """`Optimizer`: annealed moves of blocks, groups and chips; a sample is one move."""

    start: Int16[np.ndarray, "N"] | None = None
    """[N] chips to start from; None: the compiler heuristic's."""
    cooling: Budget | None = None
    """Budget over which the temperature falls; None: the search's own."""
    name: str = "local-search"

    def with_start(self, plan: Plan) -> RingLocalSearch:
        """Return the same method, to start from a legal plan for the same problem."""
        return replace(self, start=plan.device)

    def with_cooling(self, budget: Budget) -> RingLocalSearch:
        """Return the same method, its cooling tied to ``budget``
        (`go_rl.core.optimizer.Cooled`)."""
        return replace(self, cooling=budget)

    def optimize(self, problem: Problem, budget: Budget, seed: int) -> Plan:
        """Return the best partition visited; see `go_rl.core.Optimizer`."""
        workspace, progress = ring_workspace(problem), Progress(budget)
        incumbent = Incumbent(workspace, progress)
        start = workspace.work_fill if self.start is None else self.start
        repaired = workspace.repair(start, seed)
        incumbent.offer(*repaired)
        legal = repaired.decisions
        if legal is not None and workspace.units.num_units > 1:
            self._walk(workspace, incumbent, progress, legal.device[0], seed)
        return finish_plan(workspace, incumbent, self.name, seed, progress)

    def _walk(
        self,
        workspace: RingWorkspace,
        incumbent: Incumbent,
        progress: Progress,
        device: Int16[np.ndarray, "N"],
        seed: int,
    ) -> None:
        instance, units, piece = workspace.solver.instance, workspace.units, SHORTEST
        net, state, refused = instance.net, new_walk(instance.net, device[instance.leader], seed), 0
        scale = SPREAD ** np.random.default_rng(seed).uniform(-1.0, 1.0)
        while not progress.spent:
            moves = int(min(piece, progress.remaining_samples))
            temperature = scale * HOT * (COLD / HOT) ** progress.share_of(self.cooling)
            before = state.state[BEST]
            walk(net, units, state, temperature, moves)
            progress.record(float("inf"), moves)
            if state.state[SCORE] == ILLEGAL:
                return
            # A piece cut short by the budget is not looked at: a longer run would not either.
            if moves < piece or state.state[BEST] >= before:
                continue
            piece = min(2 * piece, LONGEST)
            repaired = workspace.repair(workspace.nodes_of(state.best), seed)
            incumbent.offer(*repaired, samples=0)
            refused = refused + 1 if repaired.evaluation.status is Status.OUT_OF_MEMORY else 0
            if refused == REFUSALS and incumbent.decisions is not None:
                refused, found = 0, incumbent.decisions.device[0][instance.leader]
                tight = replace(net, capacity=(net.capacity * SQUEEZE).astype(np.int64))
                again = new_walk(tight, found, int(state.random[0] >> np.uint64(1)))
                walk(tight, units, again, HOT, 0)
                if again.state[SCORE] != ILLEGAL:
                    net, state = tight, again
