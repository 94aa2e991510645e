"""Local search for max-load and latency: multilevel annealing from splits of the interval DP.

Several walkers, each with its own seed, repeat: coarsen at random inside the current devices, then
anneal from the coarsest level down to single blocks, and keep the best. Walkers run on threads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from go_rl.core import (
    Budget,
    Device,
    Hardware,
    Links,
    Objective,
    OpKind,
    Plan,
    Problem,
    Progress,
    SearchError,
    Topology,
)
from go_rl.core.decisions import Decisions
from go_rl.costs.models import ProblemOptions, make_problem
from go_rl.graphs.readers.graph_builder import GraphBuilder, Node
from go_rl.objectives.common.incumbent import finish_plan
from go_rl.objectives.host.methods.landscapes import (
    LATENCY_SETTINGS,
    MAX_LOAD_SETTINGS,
    LatencyLandscape,
    MaxLoadLandscape,
)
from go_rl.objectives.host.methods.walkers import Walker, WalkSettings
from go_rl.objectives.host.workspace import HostWorkspace, host_workspace


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
        workspace, progress = host_workspace(problem), Progress(budget)
        if workspace.infeasible is not None:
            return finish_plan(workspace, workspace.infeasible, self.name, seed, progress)
        if problem.objective is Objective.LATENCY:  # max-load raises its bound as it goes
            progress.raise_bound(workspace.bound)
        return self._search(workspace, progress, seed, settings)

    def _search(
        self, workspace: HostWorkspace, progress: Progress, seed: int, settings: WalkSettings
    ) -> Plan:
        latency = workspace.problem.objective is Objective.LATENCY
        landscape = (LatencyLandscape if latency else MaxLoadLandscape)(workspace)
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


def _compile(problem: Problem) -> Plan:
    """Search without a bound, which the first split of a chain would meet."""
    settings = replace(_SETTINGS[problem.objective], orders=4, moves_a_cycle=100)
    progress = Progress(Budget(samples=4_000))
    return LocalSearch()._search(host_workspace(problem), progress, 0, settings)


WARM_UP_NODES = 12
"""Nodes of the chain on which a search is compiled: a coarse level above the single blocks."""
_SETTINGS = {Objective.MAX_LOAD: MAX_LOAD_SETTINGS, Objective.LATENCY: LATENCY_SETTINGS}


@cache
def warm_up(search: Callable[[Problem], object], objective: Objective) -> None:
    """Run ``search`` on a small chain, the first time that it is called in this process: what it
    compiles before its clock starts is cached for the installation."""
    search(_chain(objective))


def _chain(objective: Objective) -> Problem:
    builder = GraphBuilder("warm-up")
    for n in range(WARM_UP_NODES):
        builder.add_node(Node(n, "Op", OpKind.OTHER, flops=1.0, output_bytes=1.0, weight_bytes=1.0))
        if n:
            builder.add_edge(n - 1, n, 1.0)
    tile = Device("tile", 1.0, float(WARM_UP_NODES), 1.0)
    cpu = Device("cpu", 1.0, 1.0, 1.0, is_cpu=True)
    hardware = Hardware("warm-up", (tile, tile, cpu), Links(Topology.FULL, 1.0))
    return make_problem(builder.build(), hardware, ProblemOptions(objective=objective))
