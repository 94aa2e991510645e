"""The plan decoder of a problem, by the policy that draws."""

from __future__ import annotations

from functools import lru_cache

from go_rl.core import Objective, PolicyError, Problem
from go_rl.objectives.common.workspace import Workspace
from go_rl.objectives.makespan.workspace import makespan_workspace
from go_rl.objectives.ring.workspace import RingWorkspace
from go_rl.policy.config import POLICIES, check_policy
from go_rl.policy.dispatch.dispatch_plans import DispatchPlans
from go_rl.policy.makespan_plans import MakespanPlans
from go_rl.policy.nodes.nodes_plans import NodesPlans
from go_rl.policy.orders.orders_plans import OrdersPlans
from go_rl.policy.plan_decoder import PlanDecoder
from go_rl.policy.ring.ring_plans import RingPlans

MAKESPAN_PLANS: dict[str, type[MakespanPlans]] = {"nodes": NodesPlans, "dispatch": DispatchPlans}
"""Plan decoders of connected devices, by the name of the policy."""


def plan_decoder(
    problem: Problem,
    kind: str,
    workspace: Workspace | None = None,
    solver: str = "sample",
) -> PlanDecoder:
    """Return what turns a policy's actions into plans of a problem.

    Args:
        problem: priced.
        kind: name of the policy.
        workspace: of a ring, with prices of its own; None: the one that all methods share.
        solver: how placements on a ring go through the solver, one of `SOLVER_MODES`.

    Raises:
        PolicyError: there is no such policy, or it does not solve such problems.
    """
    check_policy(kind)
    if problem.objective is not (own := POLICIES[kind].objective):
        raise PolicyError(
            f"a {kind} policy solves objective {own}, not {problem.objective}; policies solve "
            "ring and makespan"
        )
    if own is Objective.RING:
        given = workspace if isinstance(workspace, RingWorkspace) else None
        return (OrdersPlans if kind == "orders" else RingPlans)(problem, given, solver)
    return _shared(problem, kind)


@lru_cache(maxsize=4)
def _shared(problem: Problem, kind: str) -> MakespanPlans:
    """A decoder keeps no state beside its problem: compiling, searching and learning share it."""
    return MAKESPAN_PLANS[kind](makespan_workspace(problem))
