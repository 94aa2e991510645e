"""Plans judged by other prices than those that they were found with, and how much plans differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np

from go_rl.api.options import OptimizeOptions
from go_rl.api.problem import problem_for
from go_rl.core import Objective, OpGraph, Plan
from go_rl.core.decisions import Decisions
from go_rl.costs.learning.metrics import kendall
from go_rl.costs.models import CostModel
from go_rl.objectives.common.workspace import Workspace
from go_rl.objectives.host.workspace import host_workspace
from go_rl.objectives.makespan.workspace import makespan_workspace

ANALYTICAL, LEARNED = "analytical", "learned:gpus"
Minimised = Literal["max-load", "makespan"]
"""Objectives whose plans can be judged here."""


def workspaces(
    graph: OpGraph, hardware: str, objective: Minimised, decide: str,
    costs: Mapping[str, str | CostModel],
) -> dict[str, Workspace]:  # fmt: skip
    """Return the same problem under several prices, by their names."""
    found: dict[str, Workspace] = {}
    for name, cost in costs.items():
        options = OptimizeOptions(objective, decide, hardware=hardware, cost=cost)
        problem = problem_for(graph, options)
        is_makespan = problem.objective is Objective.MAKESPAN
        found[name] = makespan_workspace(problem) if is_makespan else host_workspace(problem)
    return found


def seconds_of(plan: Plan, space: Workspace) -> float:
    """Return what a plan of the same graph and hardware takes by a workspace's prices; inf: it
    does not fit."""
    return float(space.evaluate(_decisions(plan)).seconds[0])


def moved(graph: OpGraph, one: Plan, other: Plan) -> float:
    """Return the share of the FLOP that two plans place on different devices, after the renaming of
    devices under which it is least."""
    from scipy.optimize import linear_sum_assignment

    count = int(max(one.device.max(), other.device.max())) + 1
    shared = np.zeros((count, count))
    np.add.at(shared, (one.device.astype(np.int64), other.device.astype(np.int64)), graph.flops)
    rows, columns = linear_sum_assignment(-shared)
    return max(0.0, 1.0 - float(shared[rows, columns].sum() / graph.flops.sum()))


def reordered(graph: OpGraph, one: Plan, other: Plan) -> float:
    """Return the share of pairs of operators that two plans rank in another order."""
    busy = ~graph.is_fed
    first, second = (_priority(plan)[busy].astype(np.float64) for plan in (one, other))
    tau = kendall(first, second, np.zeros(int(busy.sum()), np.int64))
    return max(0.0, 0.5 * (1.0 - round(tau, 9)))


def regrouped(graph: OpGraph, one: Plan, other: Plan) -> float:
    """Return the share of the edges inside a kernel of either plan that are inside one of a single
    plan only; 0 where nothing is fused."""
    inside = []
    for plan in (one, other):
        leader = np.arange(graph.num_nodes) if plan.fusion_group is None else plan.fusion_group
        inside.append(leader[graph.senders] == leader[graph.receivers])
    either = inside[0] | inside[1]
    return float((inside[0] ^ inside[1]).sum() / max(1, either.sum()))


def kernel_count(graph: OpGraph, plan: Plan) -> int:
    """Return the number of kernels that a plan launches."""
    leader = np.arange(graph.num_nodes) if plan.fusion_group is None else plan.fusion_group
    return len(np.unique(leader[~graph.is_fed]))


def _priority(plan: Plan) -> np.ndarray:
    return -np.arange(len(plan.device)) if plan.priority is None else plan.priority


def _decisions(plan: Plan) -> Decisions:
    priority, leader = (
        None if each is None else each[None].astype(np.int64)
        for each in (plan.priority, plan.fusion_group)
    )
    return Decisions(plan.device[None], priority, leader)
