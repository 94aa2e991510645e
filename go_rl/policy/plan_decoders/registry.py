"""The decoder of a problem, by its objective."""

from __future__ import annotations

from functools import lru_cache

from go_rl.core import Objective, PolicyError, Problem
from go_rl.objectives.common.workspace import Workspace
from go_rl.objectives.makespan.workspace import makespan_workspace
from go_rl.objectives.ring.workspace import RingWorkspace
from go_rl.policy.plan_decoders.makespan_decoder import MakespanDecoder
from go_rl.policy.plan_decoders.plan_decoder import PlanDecoder
from go_rl.policy.plan_decoders.ring_decoder import RingDecoder


def plan_decoder(
    problem: Problem, workspace: Workspace | None = None, solver: str = "sample"
) -> PlanDecoder:
    """Return what turns a policy's actions into plans of a problem.

    Args:
        problem: of an objective that has policies.
        workspace: of a ring, with prices of its own; None: the one that all methods share.
        solver: how placements on a ring go through the solver, one of `SOLVER_MODES`.

    Raises:
        PolicyError: no policy solves such problems.
    """
    if problem.objective is Objective.RING:
        own = workspace if isinstance(workspace, RingWorkspace) else None
        return RingDecoder(problem, own, solver)
    if problem.objective is Objective.MAKESPAN:
        return _shared(problem)
    raise PolicyError(
        f"no policy solves objective {problem.objective}; policies solve ring and makespan"
    )


@lru_cache(maxsize=4)
def _shared(problem: Problem) -> MakespanDecoder:
    """A decoder keeps no state beside its problem: compiling, searching and learning share it."""
    return MakespanDecoder(makespan_workspace(problem))
