"""Simulated annealing over legal partitions: every move is repaired by the solver's FIX.

Kirkpatrick, Gelatt, Vecchi, "Optimization by simulated annealing", Science 1983. The state is a
legal partition; a move sends one block, or one block with all that follows (precedes) it on its
chip, to a neighbouring chip. Energy is log T_max, so temperatures have no unit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Int16

from go_rl.core import Budget, Evaluation, Plan, Problem, Progress
from go_rl.objectives.common.incumbent import Incumbent, finish_plan
from go_rl.objectives.ring.workspace import RingWorkspace, ring_workspace

HOT, COLD = 0.1, 0.001
"""First and last temperature, in units of log T_max."""


@dataclass(frozen=True, eq=False)
class Annealing:
    """`Optimizer`: simulated annealing from a given start, else from the compiler heuristic."""

    start: Int16[np.ndarray, "N"] | None = None
    """[N] chips to start from."""
    cooling: Budget | None = None
    """Budget over which the temperature falls; None: the search's own."""
    nodewise: bool = False
    """Whether FIX keeps a move node by node, as published."""
    name: str = "annealing"

    def with_start(self, plan: Plan) -> Annealing:
        """Return the same method, to start from a legal plan for the same problem."""
        return replace(self, start=plan.device)

    def with_cooling(self, budget: Budget) -> Annealing:
        """Return the same method, its cooling tied to ``budget``
        (`go_rl.core.optimizer.Cooled`)."""
        return replace(self, cooling=budget)

    def optimize(self, problem: Problem, budget: Budget, seed: int) -> Plan:
        """Return the best partition visited; see `go_rl.core.Optimizer`."""
        workspace, progress = ring_workspace(problem), Progress(budget)
        incumbent = Incumbent(workspace, progress)
        rng = np.random.default_rng(seed)
        start = self.start
        if start is None:  # node by node, FIX may find no way from the fill to a legal plan
            start = workspace.reference.device[0] if self.nodewise else workspace.work_fill
        legal, evaluation, fidelity = workspace.repair(start, seed, self.nodewise)
        incumbent.offer(legal, evaluation, fidelity)
        current = None if legal is None else legal.device[0]
        energy, busiest = _energy(evaluation.seconds), _busiest(evaluation)
        while current is not None and not progress.spent and progress.share < 1.0:
            temperature = HOT * (COLD / HOT) ** progress.share_of(self.cooling)
            proposal = _move(workspace, current, busiest, rng)
            number = int(rng.integers(2**31))
            moved, evaluation, fidelity = workspace.repair(proposal, number, self.nodewise)
            incumbent.offer(moved, evaluation, fidelity)
            after = _energy(evaluation.seconds)
            if moved is not None and rng.random() < np.exp(
                min(0.0, (energy - after) / temperature)
            ):
                current, energy, busiest = moved.device[0], after, _busiest(evaluation)
        return finish_plan(workspace, incumbent, self.name, seed, progress)


def _energy(seconds: float) -> float:
    return float(np.log(max(seconds, 1e-300))) if np.isfinite(seconds) else 700.0


def _busiest(evaluation: Evaluation) -> int:
    """The chip that sets T_max, or that feeds the link which does."""
    if not evaluation.link_seconds.size:
        return 0  # nothing was placed
    return int(np.argmax(np.maximum(evaluation.device_seconds, evaluation.link_seconds)))


def _move(
    workspace: RingWorkspace,
    current: Int16[np.ndarray, "N"],
    busiest: int,
    rng: np.random.Generator,
) -> Int16[np.ndarray, "N"]:
    """Return [N] chips with one block, or a block and its followers on the chip, moved by one.

    Half of the moves start on the busiest chip: only they can lower T_max.
    """
    instance = workspace.solver.instance
    chip = current[instance.leader].copy()
    there = np.flatnonzero(chip == busiest)
    from_busiest = there.size > 0 and rng.random() < 0.5
    block = int(rng.choice(there)) if from_busiest else int(rng.integers(len(chip)))
    step = 1 if rng.random() < 0.5 else -1
    target = int(chip[block]) + step
    if not 0 <= target < workspace.chips:
        target = int(chip[block]) - step
    if not 0 <= target < workspace.chips:
        return current
    for b in _with_followers(workspace, chip, block, target) if rng.random() < 0.7 else (block,):
        chip[b] = target
    return workspace.nodes_of(chip)


def _with_followers(
    workspace: RingWorkspace, chip: np.ndarray, block: int, target: int
) -> list[int]:
    """The block and whatever must go with it so that data still flows upwards."""
    net = workspace.solver.instance.net
    forward = target > chip[block]
    ptr, ids = (net.succ_ptr, net.succ) if forward else (net.pred_ptr, net.pred)
    stack, seen = [block], {block}
    while stack:
        v = stack.pop()
        for w in ids[ptr[v] : ptr[v + 1]].tolist():
            behind = chip[w] < target if forward else chip[w] > target
            if behind and w not in seen:
                seen.add(w)
                stack.append(w)
    return sorted(seen)
