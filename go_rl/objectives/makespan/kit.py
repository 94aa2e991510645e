"""`MAKESPAN_KIT`: the replayed iteration on fully connected devices as an objective."""

from __future__ import annotations

import numpy as np

from go_rl.core import Objective, Problem
from go_rl.objectives.common.kit import EnvironmentTraits, ObjectiveKit, SearchKit, WorkAndCopied
from go_rl.objectives.makespan.workspace import MakespanWorkspace, makespan_workspace


def _search() -> SearchKit:
    from go_rl.objectives.makespan.search import MAKESPAN_SEARCH

    return MAKESPAN_SEARCH


def _work(problem: Problem) -> WorkAndCopied:
    fastest = problem.seconds.min(axis=0)
    return np.where(np.isfinite(fastest), fastest, 0.0), problem.graph.is_fed


MAKESPAN_KIT = ObjectiveKit(
    Objective.MAKESPAN, makespan_workspace, _search,
    EnvironmentTraits(MakespanWorkspace, _work, ("node", "all"), "root", decides_fed=False),
)  # fmt: skip
"""Kit of the makespan."""
