"""The plan decoder of a problem, by the policy that draws."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial

from go_rl.core import PolicyError, Problem
from go_rl.objectives.common.workspace import Workspace
from go_rl.objectives.makespan.workspace import MakespanWorkspace, makespan_workspace
from go_rl.objectives.ring.workspace import RingWorkspace
from go_rl.policy.config import POLICIES, check_policy
from go_rl.policy.dispatch.dispatch_plans import DispatchPlans
from go_rl.policy.makespan_plans import MakespanPlans
from go_rl.policy.nodes.nodes_plans import NodesPlans
from go_rl.policy.orders.orders_plans import OrdersPlans
from go_rl.policy.plan_decoder import PlanDecoder
from go_rl.policy.ring.ring_plans import RingPlans


def plan_decoder(
    problem: Problem, kind: str, workspace: Workspace | None = None, solver: str = "sample"
) -> PlanDecoder:
    """Return what turns a policy's actions into plans of a problem.

    Args:
        problem: priced.
        kind: name of the policy.
        workspace: of the problem, not shared with other methods; None: the one that all share.
        solver: how placements on a ring go through the solver, one of `SOLVER_MODES`.

    Raises:
        PolicyError: there is no such policy, or it does not solve such problems.
    """
    check_policy(kind)
    if problem.objective is not (own := POLICIES[kind].objective):
        raise PolicyError(
            f"policy {kind} solves objective {own}, not {problem.objective}; policies solve "
            "ring and makespan"
        )
    return PLANS[kind](problem, workspace, solver)


def _on_ring(
    plans: type[RingPlans], problem: Problem, workspace: Workspace | None, solver: str
) -> PlanDecoder:
    return plans(problem, workspace if isinstance(workspace, RingWorkspace) else None, solver)


def _connected(
    plans: type[MakespanPlans], problem: Problem, workspace: Workspace | None, solver: str
) -> PlanDecoder:
    given = workspace if isinstance(workspace, MakespanWorkspace) else None
    return _shared(plans, problem) if given is None else plans(given)


@lru_cache(maxsize=4)
def _shared(plans: type[MakespanPlans], problem: Problem) -> MakespanPlans:
    """A decoder keeps no state beside its problem: compiling, searching and learning share it."""
    return plans(makespan_workspace(problem))


PLANS: dict[str, Callable[[Problem, Workspace | None, str], PlanDecoder]] = {
    "ring": partial(_on_ring, RingPlans),
    "orders": partial(_on_ring, OrdersPlans),
    "nodes": partial(_connected, NodesPlans),
    "dispatch": partial(_connected, DispatchPlans),
}
"""Makers of plan decoders, by the name of the policy."""
