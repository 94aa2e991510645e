"""Random search: the solver's SAMPLE under uniform probabilities."""

from __future__ import annotations

from dataclasses import dataclass

from go_rl.core import OPEN_SAMPLES, Budget, Plan, Problem, Progress
from go_rl.core.evaluation import STATUS_CODES
from go_rl.objectives.common.incumbent import Incumbent, finish_plan
from go_rl.objectives.ring.methods.stage_prices import price_samples
from go_rl.objectives.ring.workspace import ring_workspace

BATCH = 16
"""Samples drawn and priced at a time."""


@dataclass(frozen=True)
class RandomSearch:
    """`Optimizer`: uniform legal partitions, the best of them."""

    nodewise: bool = False
    """Each node's chip drawn uniformly from what propagation leaves, one node after the other, as
    published; else uniform cuts of random orders."""
    name: str = "random"

    def optimize(self, problem: Problem, budget: Budget, seed: int) -> Plan:
        """Return the best of the samples; see `go_rl.core.Optimizer`."""
        workspace, progress = ring_workspace(problem), Progress(budget, OPEN_SAMPLES)
        incumbent = Incumbent(workspace, progress)
        rounds = 0
        while not progress.spent:
            size = int(min(BATCH, progress.remaining_samples))
            drawn = workspace.solver.sample(
                batch=size, seed=seed * 1_000_003 + rounds, nodewise=self.nodewise
            )
            rounds += 1
            if not drawn.ok.any():
                status = STATUS_CODES[int(drawn.status[0])]
                incumbent.offer(None, workspace.failed(status, drawn.detail), samples=size)
                break
            incumbent.offer_scored(price_samples(workspace, drawn))
        return finish_plan(workspace, incumbent, self.name, seed, progress)
