"""Interval DP for max-load over several linear orders of the blocks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int16, Int32

from go_rl.core import Budget, Plan, Problem, Progress
from go_rl.core.decisions import Decisions
from go_rl.objectives.common.incumbent import finish_plan
from go_rl.objectives.host.greedy import greedy_max_load
from go_rl.objectives.host.hypergraph import Contraction, device_loads
from go_rl.objectives.host.methods.interval_dp import split_for_max_load
from go_rl.objectives.host.orders import block_orders
from go_rl.objectives.host.workspace import host_workspace


@dataclass(frozen=True)
class MaxLoadDP:
    """DP over linear orders: contiguous in one of the orders tried, optimal for that order."""

    orders: int = 8
    """Orders tried while the budget lasts."""
    name: str = "dp"

    def optimize(self, problem: Problem, budget: Budget, seed: int) -> Plan:
        """Return the best plan over all orders; one sample is one order's plan."""
        workspace, progress = host_workspace(problem), Progress(budget)
        contraction = workspace.contraction
        if workspace.infeasible is not None:
            return finish_plan(workspace, workspace.infeasible, self.name, seed, progress)
        best = None
        progress.raise_bound(workspace.bound)
        orders = block_orders(problem, contraction, seed, self.orders)
        for device in splits(contraction, orders, 1.0):
            if progress.record(assignment_value(contraction, device)):
                best = device
            if progress.spent:
                break
        found = workspace.gave_up if best is None else Decisions(best[contraction.block][None])
        return finish_plan(workspace, found, self.name, seed, progress, progress.bound)


def splits(
    contraction: Contraction, orders: list[Int32[np.ndarray, "_"]], slack: float
) -> Iterator[Int16[np.ndarray, "_"]]:
    """Yield legal assignments [B]: the greedy fill of the first order, then the split of each order
    that comes within ``slack`` times the best value so far."""
    least = np.inf
    filled = greedy_max_load(contraction, orders[0])
    if filled is not None:
        least = assignment_value(contraction, filled)
        yield filled
    for order in orders:
        device = split_for_max_load(contraction, order, slack * least)
        if device is not None:
            least = min(least, assignment_value(contraction, device))
            yield device


def assignment_value(contraction: Contraction, device: Int16[np.ndarray, "B"]) -> float:
    """Return the largest load of an assignment of blocks, inf when it overfills a memory."""
    held = np.bincount(device, contraction.hypergraph.size, len(contraction.devices.kind))
    if (held > contraction.devices.limit).any():
        return float("inf")
    return float(device_loads(contraction.hypergraph, contraction.devices, device).max())
