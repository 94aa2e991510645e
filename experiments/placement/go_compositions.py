"""Placement, schedule and fusion by a compiler stack of today, one pass after the other."""

from __future__ import annotations

from dataclasses import dataclass

from experiments.placement.go_learners import Search
from go_rl.core import Budget, Plan, Problem, Progress
from go_rl.objectives.makespan.methods.composed import Order, composition, expert_placement


@dataclass(frozen=True)
class Compiler:
    """`Optimizer`: the one plan of the expert's placement, HEFT's order and greedy fusion, as far
    as these decisions are asked for. `go_rl.objectives.methods.Composed` has the best of all such
    stacks."""

    name: str = "compiler"

    def optimize(self, problem: Problem, budget: Budget, seed: int) -> Plan:
        """Return that plan; see `go_rl.core.Optimizer`."""
        search = Search(problem, Progress(budget))
        device = expert_placement(search.workspace)
        search.offer(composition(search.workspace, device, Order.PLACED, fused=True))
        return search.plan(self.name, seed)
