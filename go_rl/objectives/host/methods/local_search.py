"""Local search for max-load and latency: multilevel annealing from splits of the interval DP.

Several walkers, each with its own seed, repeat: coarsen at random inside the current devices, then
anneal from the coarsest level down to single blocks, and keep the best. Walkers run on threads.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from go_rl.core import Budget, Objective, Plan, Problem, Progress, SearchError
from go_rl.core.decisions import Decisions
from go_rl.objectives.common.incumbent import finish_plan
from go_rl.objectives.host.methods.landscapes import (
    LATENCY_SETTINGS,
    MAX_LOAD_SETTINGS,
    LatencyLandscape,
    MaxLoadLandscape,
)
from go_rl.objectives.host.methods.walkers import Walker, WalkSettings
from go_rl.objectives.host.methods.warm_up import warm_up
from go_rl.objectives.host.workspace import host_workspace


@dataclass(frozen=True)
class LocalSearch:
    """`Optimizer`: interval DP over several orders, then multilevel simulated annealing."""

    name: str = "local-search"

    def optimize(self, problem: Problem, budget: Budget, seed: int) -> Plan:
        """Return the best plan found; one sample is one split or one priced move.

        Methods are compiled before the budget's clock starts.

        Raises:
            SearchError: the objective is neither max-load nor latency.
        """
        if problem.objective not in _SETTINGS:
            raise SearchError(
                "local-search works on --objective max-load or latency; for the ring choose "
                "annealing or linear-dp"
            )
        settings = _SETTINGS[problem.objective]
        warm_up(_compile, problem.objective)
        return self._search(problem, budget, seed, settings)

    def _search(self, problem: Problem, budget: Budget, seed: int, settings: WalkSettings) -> Plan:
        workspace, progress = host_workspace(problem), Progress(budget)
        if workspace.infeasible is not None:
            return finish_plan(workspace, workspace.infeasible, self.name, seed, progress)
        latency = problem.objective is Objective.LATENCY
        landscape = (LatencyLandscape if latency else MaxLoadLandscape)(workspace)
        if latency:  # max-load raises its bound as it goes
            progress.raise_bound(workspace.bound)
        starts = landscape.starts(seed, settings.orders, progress)
        walkers = [
            Walker(landscape, settings, starts[i % len(starts)], np.random.default_rng([seed, i]))
            for i in range(settings.walkers)
        ]
        device, bound, progress = landscape.search(walkers, progress, seed)
        if device is None:
            return finish_plan(workspace, workspace.gave_up, self.name, seed, progress)
        found = Decisions(device[workspace.contraction.block][None])
        return finish_plan(workspace, found, self.name, seed, progress, bound)


def _compile(problem: Problem) -> None:
    settings = replace(_SETTINGS[problem.objective], orders=4, moves_a_cycle=100)
    LocalSearch()._search(problem, Budget(samples=4_000), 0, settings)


_SETTINGS = {Objective.MAX_LOAD: MAX_LOAD_SETTINGS, Objective.LATENCY: LATENCY_SETTINGS}
