"""`judge`: a split priced as a plan, checked independently, and improved by one move."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Int16

from go_rl.core import Budget, Plan, Problem, Progress, SplitError, plan_for
from go_rl.core.decisions import Decisions
from go_rl.core.evaluation import failed
from go_rl.objectives.common.incumbent import finish_plan
from go_rl.objectives.common.workspace import Workspace
from go_rl.objectives.kits import kit_of
from go_rl.objectives.makespan.methods.composed import Order, composition
from go_rl.objectives.makespan.workspace import MakespanWorkspace
from go_rl.objectives.ring.workspace import RingWorkspace
from go_rl.plans.splits.broken_rules import broken_rules
from go_rl.plans.splits.moves import Move, best_move
from go_rl.plans.splits.split import Split
from go_rl.verify.check_plan import Verdict, check_plan

NAME = "split"
"""Name of the split's plan in tables."""


@dataclass(frozen=True, eq=False)
class Judgement:
    """A judged split."""

    problem: Problem
    split: Split
    plan: Plan
    """The split as a plan, with the proven bound; a failure where it breaks a rule."""
    verdict: Verdict
    """The independent checker's: the rules that are broken, or none."""
    move: Move | None
    """Best move of one part; None: none helps, or none was looked for."""
    repaired: Plan | None
    """Nearest legal plan that was found for an illegal split of a ring; None: there is none."""

    def __repr__(self) -> str:
        moved = "" if self.move is None else f"; moving {self.move.part!r} gains most"
        return (
            f"<Judgement of a split in notation {self.split.notation!r}, {self.problem.objective} "
            f"on {self.problem.hardware.name!r}: {self.verdict.status}, {self.plan.value:.6g} s an "
            f"iteration, gap {100 * self.plan.gap:.3g} %{moved}>"
        )

    @property
    def ok(self) -> bool:
        """Whether the split is legal and fits."""
        return self.verdict.ok

    @property
    def bound(self) -> float:
        """Proven lower bound of any plan of the problem, seconds."""
        return self.plan.bound


def judge(split: Split, problem: Problem, moves: bool = True) -> Judgement:
    """Judge a split of a problem's graph.

    Order and kernels, which a split leaves open, are the best of a few compositions
    (`split_decisions`); copies are those that the rules of a ring put.

    Args:
        split: devices of the nodes.
        problem: objective, rules, hardware and prices.
        moves: whether to look for the best move.

    Raises:
        SplitError: the split is of another graph.
    """
    if len(split.device) != problem.graph.num_nodes:
        raise SplitError(
            f"the split has {len(split.device)} nodes, {problem.graph.name!r} "
            f"{problem.graph.num_nodes}"
        )
    workspace = kit_of(problem).workspace(problem)
    broken = broken_rules(workspace, split.device)
    if broken:
        verdict = Verdict(broken[0].status, broken)
        plan, repaired = _failed(workspace, split, verdict), _repaired(workspace, split)
    else:
        plan, repaired = _priced(workspace, split), None
        verdict = check_plan(plan, problem)
    move = best_move(workspace, split, plan) if moves else None
    return Judgement(problem, split, plan, verdict, move, repaired)


def split_decisions(workspace: Workspace, device: Int16[np.ndarray, "N"]) -> Iterator[Decisions]:
    """Yield plans on devices [N]: for makespan, operators in topological order and by upward ranks,
    fused greedily and not, as far as the problem decides these; else the devices alone."""
    if not isinstance(workspace, MakespanWorkspace):
        yield Decisions(device[None])
        return
    decided = workspace.problem.decisions
    for fused in (True, False) if "fusion" in decided else (False,):
        for order in (Order.PLACED, Order.TOPOLOGICAL):
            if order is Order.TOPOLOGICAL or "schedule" in decided:
                yield composition(workspace, device.astype(np.int64), order, fused)


def _priced(workspace: Workspace, split: Split) -> Plan:
    plans = [(decisions, workspace.evaluate(decisions).seconds[0])
             for decisions in split_decisions(workspace, split.device)]  # fmt: skip
    decisions, _ = min(plans, key=lambda each: each[1])
    progress = Progress(Budget(samples=len(plans)))
    return finish_plan(workspace, decisions, NAME, 0, progress, workspace.bound)


def _failed(workspace: Workspace, split: Split, verdict: Verdict) -> Plan:
    """A plan that holds the devices as they were given, and why they cannot be priced."""
    problem = workspace.problem
    evaluation = failed(verdict.status, problem.hardware.num_devices, verdict.sentence)
    return plan_for(
        problem, evaluation=evaluation, bound=workspace.bound, device=split.device, replicas={},
        optimizer=NAME, seed=0, samples=0, wall_seconds=0.0,
    )  # fmt: skip


def _repaired(workspace: Workspace, split: Split) -> Plan | None:
    if not isinstance(workspace, RingWorkspace):
        return None
    decisions, evaluation, _ = workspace.repair(split.device)
    if decisions is None or not evaluation.status.ok:
        return None
    progress = Progress(Budget(samples=1))
    plan = finish_plan(workspace, decisions, f"{NAME}, repaired", 0, progress, workspace.bound)
    return replace(plan, notes=())
