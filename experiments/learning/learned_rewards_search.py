"""Searches of `learned_rewards`: a policy that learns on one problem, after the compiler's plan."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from jaxtyping import Int64

from experiments.learning.learned_rewards_page import TaskName
from go_rl.core import Budget, Objective, OpGraph, Optimizer, Plan, Problem, load_hardware, rule_set
from go_rl.costs.models import Analytical, CostModel, ProblemOptions, make_problem
from go_rl.costs.models.fused import FusedPrices
from go_rl.objectives.methods import Annealing, Greedy, GreedyFusion
from go_rl.policy.learn.fine_tune import FineTuned
from go_rl.tuning.xla.budget import TuningBudget

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


def search(
    problem: Problem,
    budget: TuningBudget,
    seed: int,
    partitioner: str = "finetuned",
    samples: int = MOST,
) -> Plan:
    """Return the better plan, by the problem's prices, of the compiler's and of what is found in
    the time that is left; its samples are those of both."""
    ring = problem.objective is Objective.RING
    learner: Optimizer = Annealing() if ring and partitioner == "annealing" else FineTuned()
    first = (Greedy() if ring else GreedyFusion()).optimize(problem, Budget(100), seed)
    if budget.over:
        return first
    seconds = min(budget.left, NEVER)
    found = learner.optimize(problem, Budget(samples, seconds), seed)
    best = min(first, found, key=lambda plan: plan.value)
    return replace(best, samples=first.samples + found.samples)


def warm_up(task: TaskName, graph: OpGraph, partitioner: str) -> None:
    """Compile whatever a search needs."""
    problem = problem_of(task, graph, Analytical())
    search(problem, endless(), 0, partitioner, WARM)


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
