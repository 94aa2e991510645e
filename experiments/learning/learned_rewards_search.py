"""Searches of `learned_rewards`: a policy that learns on one problem, after the compiler's plan."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from jaxtyping import Float64, Int64

from experiments.learning.learned_rewards_page import TaskName
from go_rl.core import (
    Budget,
    Device,
    Objective,
    OpGraph,
    Plan,
    Problem,
    load_hardware,
    rule_set,
)
from go_rl.core.graph.op_kind import FREE_KINDS
from go_rl.costs.models import Analytical, CostModel, Kernels, ProblemOptions, make_problem
from go_rl.costs.models.fused import FusedPrices
from go_rl.graphs.cutting.kernel_set import cut_kernels
from go_rl.objectives.methods import Greedy, GreedyFusion
from go_rl.policy.learn.fine_tune import FineTuned
from go_rl.runtime.records import AS_IT_COMES
from go_rl.tuning.xla.budget import TuningBudget
from go_rl.tuning.xla.fusions import Part
from go_rl.tuning.xla.kernel_timer import KernelTimer

PACKAGES: dict[TaskName, str] = {"fusion": "cpu-1", "partition": "cpu-1-ring4"}
WARM = 40
"""Plans of a search that compiles whatever the policy needs."""
MOST = 10**9
"""Plans in a search that only seconds end."""
NEVER = 1e6
"""Seconds of a kernel that is never chosen."""


def problem_of(task: TaskName, graph: OpGraph, model: CostModel | None) -> Problem:
    """Return a graph's problem under some prices."""
    if task == "fusion":
        options = ProblemOptions(Objective.MAKESPAN, decisions=("fusion",), cost_model=model)
    else:
        options = ProblemOptions(rules=rule_set("relay"), cost_model=model)
    return make_problem(graph, load_hardware(PACKAGES[task]), options)


def search(problem: Problem, budget: TuningBudget, seed: int, samples: int = MOST) -> Plan:
    """Return the better plan, by the problem's prices, of the compiler's and of what is found in
    the time that is left; its samples are those of both."""
    ring = problem.objective is Objective.RING
    first = (Greedy() if ring else GreedyFusion()).optimize(problem, Budget(100), seed)
    if budget.over:
        return first
    seconds = min(budget.left, NEVER)
    found = FineTuned().optimize(problem, Budget(samples, seconds), seed)
    best = min(first, found, key=lambda plan: plan.value)
    return replace(best, samples=first.samples + found.samples)


def warm_up(task: TaskName, graph: OpGraph) -> None:
    """Compile whatever a search needs."""
    problem = problem_of(task, graph, Analytical())
    search(problem, endless(), 0, WARM)


def settled(problem: Problem, plan: Plan) -> Int64[np.ndarray, "N"]:
    """Return [N] the leader of each node's kernel; kernels that were priced as their nodes one
    after the other, because the model predicts more (`go_rl.costs.models.fused`), are split."""
    own = np.arange(problem.graph.num_nodes)
    leader = own if plan.fusion_group is None else plan.fusion_group
    prices = problem.kernels
    assert isinstance(prices, FusedPrices)
    free = replace(prices, base=np.full_like(prices.base, NEVER))  # so high that it never counts
    slower = free.seconds(leader)[0] > prices.seconds(leader)[0]
    return np.where(slower[leader], own, leader)


def endless() -> TuningBudget:
    """Return a budget that is never over."""
    return TuningBudget(float("inf"))


@dataclass(frozen=True, eq=False)
class Measuring:
    """`CostModel` of one graph on the machine that it runs on.

    A kernel that cannot be timed takes for ever, and so does one that is new when the time is over:
    simulators price it as its nodes one after the other (`go_rl.costs.models.fused`).
    """

    timer: KernelTimer
    budget: TuningBudget
    """Once it is over, nothing more is measured."""
    name: str = "measuring"
    _known: dict[tuple[int, ...], float] = field(default_factory=dict, repr=False)
    """Seconds by the nodes of a kernel."""

    def seconds(self, kernels: Kernels, device: Device) -> Float64[np.ndarray, "K"]:
        """Return [K] seconds, for any device."""
        wanted = _nodes(kernels)
        new = {nodes for nodes in wanted if nodes and nodes not in self._known}
        if new:
            for part in _parts(kernels, new):
                if self.budget.over:
                    break
                (record,) = self.timer.measure_together([(part, AS_IT_COMES)])
                self._known[part.nodes] = record.seconds or float("inf")
        return np.array([self._known.get(nodes, np.inf) if nodes else 0.0 for nodes in wanted])


def _nodes(kernels: Kernels) -> list[tuple[int, ...]]:
    """[K] the nodes of each kernel asked for that take time, ascending; none: it is free."""
    inside: dict[int, list[int]] = {}
    for node, leader in _busy(kernels):
        inside.setdefault(leader, []).append(node)
    which = range(kernels.graph.num_nodes) if kernels.which is None else kernels.which.tolist()
    free = np.isin(kernels.kind, [int(kind) for kind in FREE_KINDS]).tolist()
    return [() if f else tuple(inside.get(w, ())) for w, f in zip(which, free, strict=True)]


def _busy(kernels: Kernels) -> list[tuple[int, int]]:
    """Nodes other than inputs and constants, and their leaders."""
    busy = np.flatnonzero(~kernels.graph.is_fed)
    leader = busy if kernels.leader is None else kernels.leader[busy]
    return list(zip(busy.tolist(), leader.tolist(), strict=True))


def _parts(kernels: Kernels, new: set[tuple[int, ...]]) -> list[Part]:
    """The new kernels with their hashes."""
    leader = kernels.leader
    leader = np.arange(kernels.graph.num_nodes) if leader is None else leader
    cut, leaders = cut_kernels(kernels.graph, leader)
    place = {lead: k for k, lead in enumerate(leaders.tolist())}
    nodes = sorted(new)
    taken = cut.take(np.array([place[int(leader[each[0]])] for each in nodes], np.int64))
    return [Part(hash_, each) for hash_, each in zip(taken.hashes, nodes, strict=True)]
