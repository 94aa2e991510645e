"""Random search for the makespan objective: uniform devices and priorities, the best of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from go_rl.core import OPEN_SAMPLES, Budget, Plan, Problem, Progress
from go_rl.core.decisions import Decisions
from go_rl.objectives.common.incumbent import best_of
from go_rl.objectives.makespan.choices import LEVELS
from go_rl.objectives.makespan.workspace import MakespanWorkspace, makespan_workspace

BATCH = 16
"""Plans drawn and priced at a time."""


@dataclass(frozen=True)
class MakespanRandom:
    """`Optimizer`: every node on a device drawn from those that can run it, with a scheduling and a
    fusion priority in 0 to 19."""

    name: str = "random"

    def optimize(self, problem: Problem, budget: Budget, seed: int) -> Plan:
        """Return the best of the samples; see `go_rl.core.Optimizer`."""
        workspace, progress = makespan_workspace(problem), Progress(budget, OPEN_SAMPLES)
        plans = _plans(workspace, np.random.default_rng(seed), progress)
        return best_of(workspace, plans, self.name, seed, progress)


def _plans(
    workspace: MakespanWorkspace, rng: np.random.Generator, progress: Progress
) -> Iterator[Decisions]:
    """Yield batches of random plans without end."""
    options = workspace.choices
    count = np.maximum(options.allowed.sum(axis=0), 1)
    order = np.argsort(~options.allowed, axis=0, kind="stable")  # allowed devices first
    while True:
        shape = (int(min(BATCH, progress.remaining_samples)), workspace.num_nodes)
        which = np.minimum((rng.random(shape) * count).astype(np.int64), count - 1)
        device = order[which, np.arange(workspace.num_nodes)].astype(np.int16)
        priority = rng.integers(0, LEVELS, shape)
        yield workspace.decisions(device, priority, rng.integers(0, LEVELS, shape))
