"""`RING_KIT`: the pipeline on a ring as an objective."""

from __future__ import annotations

from go_rl.core import Objective, Problem
from go_rl.objectives.common.kit import EnvironmentTraits, ObjectiveKit, SearchKit, WorkAndCopied
from go_rl.objectives.ring.workspace import RingWorkspace, ring_workspace
from go_rl.solvers.replication import replicated_nodes


def _search() -> SearchKit:
    from go_rl.objectives.ring.search import RING_SEARCH

    return RING_SEARCH


def _work(problem: Problem) -> WorkAndCopied:
    return problem.work, replicated_nodes(problem)


RING_KIT = ObjectiveKit(
    Objective.RING, ring_workspace, _search,
    EnvironmentTraits(
        RingWorkspace, _work, ("node", "relative", "fix", "sample"), "speed-up",
        decides_fed=True, shaped=("node", "relative"),
    ),
)  # fmt: skip
"""Kit of the ring."""
