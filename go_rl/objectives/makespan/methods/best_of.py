"""Methods that evaluate the plans of a rule, one after the other; the simplest of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from go_rl.core import Budget, Plan, Problem, Progress
from go_rl.core.decisions import Decisions
from go_rl.objectives.common.incumbent import best_of
from go_rl.objectives.makespan.workspace import MakespanWorkspace, makespan_workspace


@dataclass(frozen=True)
class BestOf:
    """`Optimizer`: the best of the plans of a rule; each is a sample."""

    name: str
    plans: Callable[[MakespanWorkspace, int], Iterable[Decisions]]
    """Yields plans, given the problem and the seed."""

    def optimize(self, problem: Problem, budget: Budget, seed: int) -> Plan:
        """Return that plan; see `go_rl.core.Optimizer`."""
        workspace = makespan_workspace(problem)
        plans = self.plans(workspace, seed)
        return best_of(workspace, plans, self.name, seed, Progress(budget))


def _default(workspace: MakespanWorkspace, seed: int) -> Iterator[Decisions]:
    yield workspace.reference


def _greedily_fused(workspace: MakespanWorkspace, seed: int) -> Iterator[Decisions]:
    device = workspace.reference.device
    yield workspace.decisions(device, None, np.ones(device.shape, np.int64))


def _on_one_device(workspace: MakespanWorkspace, seed: int) -> Iterator[Decisions]:
    """Everything on one device, greedily fused and not; of devices of one kind the first, unless
    pins tell them apart."""
    kinds = workspace.problem.device_kind
    devices = np.arange(len(kinds))
    if not workspace.problem.fixed:
        devices = np.sort(np.unique(kinds, return_index=True)[1])
    fusions = (True, False) if "fusion" in workspace.problem.decisions else (False,)
    for device in devices:
        placed = np.full((1, workspace.num_nodes), device, np.int64)
        for fused in fusions:
            yield workspace.decisions(placed, None, np.ones_like(placed) if fused else None)


DefaultPlacement = partial(BestOf, "default", _default)
"""`Optimizer`: the framework's own placement, one device if the model fits, else layers
round-robin; in topological order, nothing fused."""

OneDevice = partial(BestOf, "one-device", _on_one_device)
"""`Optimizer`: the best device alone, in topological order, its kernels fused as `GreedyFusion`
does or not; what several devices are to be compared with. It fails where no device holds all."""

GreedyFusion = partial(BestOf, "fusion-greedy", _greedily_fused)
"""`Optimizer`: the default placement in topological order, greedily fused as XLA does it: from the
results backwards, each producer joins its consumers' kernel where that is legal. Here no producer
is computed twice. Without the decision fusion this is the default."""
