"""Local search for the objectives of profiled graphs: max-load and latency."""

from __future__ import annotations

from dataclasses import dataclass

from go_rl.core import Budget, Objective, Plan, Problem, SearchError
from go_rl.search.host.latency_search import LatencySearch
from go_rl.search.host.max_load_search import MaxLoadSearch


@dataclass(frozen=True)
class LocalSearch:
    """`MaxLoadSearch` or `LatencySearch`, whichever the problem's objective asks for."""

    @property
    def name(self) -> str:
        """What tables call it."""
        return "local-search"

    def optimize(self, problem: Problem, budget: Budget, seed: int) -> Plan:
        """Return the best plan found.

        Raises:
            SearchError: the objective is the ring's, whose moves need its solver.
        """
        if problem.objective is Objective.RING:
            raise SearchError(
                "local-search works on --objective max-load or latency; for the ring choose "
                "annealing or linear-dp"
            )
        if problem.objective is Objective.LATENCY:
            return LatencySearch().optimize(problem, budget, seed)
        return MaxLoadSearch().optimize(problem, budget, seed)
