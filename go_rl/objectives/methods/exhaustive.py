"""Exhaustive search: every assignment of a small problem, for a plan or the proof that none exists.

What `auto` falls back on where no method found a plan. Illegal assignments are not counted as
samples; the search ends with the first batch that holds a legal plan, or when all were tried.
"""

from __future__ import annotations

from dataclasses import dataclass

from go_rl.core import Budget, Plan, Problem, Progress
from go_rl.objectives.kits import kit_of


@dataclass(frozen=True)
class Exhaustive:
    """`Optimizer`: tries every assignment; the best of the first batch that holds a legal plan."""

    name: str = "exhaustive"

    def optimize(self, problem: Problem, budget: Budget, seed: int) -> Plan:
        """Return that plan, else a failure that says whether it is proved; a sample is one legal
        plan, of which at least one is always taken. See `go_rl.core.Optimizer`."""
        return kit_of(problem).search().exhaust(problem, self.name, seed, Progress(budget))


def is_small(problem: Problem) -> bool:
    """Whether all assignments of devices can be tried."""
    return kit_of(problem).search().is_small(problem)
