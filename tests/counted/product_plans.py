"""Plans as the product's methods make them, quickly."""

import numpy as np

from go_rl.compare.portfolio import METHODS
from go_rl.core import Budget, Objective, Plan, Problem

QUICK = {
    Objective.RING: ("greedy", "random", "annealing", "metis", "linear-dp"),
    Objective.MAX_LOAD: ("greedy", "dp", "local-search"),
    Objective.LATENCY: ("greedy", "greedy", "greedy", "local-search"),
    Objective.MAKESPAN: (
        "default", "composed", "expert", "fusion-greedy", "one-device", "heft", "metis", "random",
        "annealing",
    ),
}  # fmt: skip
"""Methods of milliseconds, the slowest of them less often."""
SAMPLES = 8


def quick_plan(problem: Problem, seed: int) -> Plan:
    """A plan of one of the objective's quick methods."""
    names = QUICK[problem.objective]
    name = names[int(np.random.default_rng(seed).integers(len(names)))]
    return plan_by(name, problem, SAMPLES, seed)


def plan_by(name: str, problem: Problem, samples: int, seed: int) -> Plan:
    """A plan of a method within some samples."""
    return METHODS[problem.objective][name]().optimize(problem, Budget(samples=samples), seed)
