"""The registry of methods by name and objective, and what the portfolio ``auto`` runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from go_rl.core import Budget, Objective, Optimizer, Problem
from go_rl.objectives.makespan.methods.hdp.hdp import HDP
from go_rl.objectives.methods import (
    Annealing,
    Composed,
    DefaultPlacement,
    Exact,
    Greedy,
    GreedyFusion,
    Heft,
    IdealDP,
    LinearDP,
    LocalSearch,
    MakespanAnnealing,
    MakespanExpert,
    MakespanMetis,
    MakespanRandom,
    MaxLoadDP,
    Metis,
    OneDevice,
    OrderAnnealing,
    RandomSearch,
    RingLocalSearch,
    UnitAnnealing,
)
from go_rl.policy.policy_search import PolicySearch

Factory = Callable[[], Optimizer]
RING, MAX_LOAD, LATENCY, MAKESPAN = Objective


def _placing() -> Optimizer:
    return PolicySearch(decoder="placement", name="policy-placement")


METHODS: Mapping[str, Mapping[Objective, Factory]] = {
    "greedy": {RING: Greedy, MAX_LOAD: Greedy, LATENCY: Greedy},
    "default": {MAKESPAN: DefaultPlacement},
    "one-device": {MAKESPAN: OneDevice},
    "policy": {RING: PolicySearch, MAKESPAN: PolicySearch},
    "policy-placement": {RING: _placing},
    "composed": {MAKESPAN: Composed},
    "expert": {MAKESPAN: MakespanExpert},
    "fusion-greedy": {MAKESPAN: GreedyFusion},
    "hdp": {MAKESPAN: HDP},
    "heft": {MAKESPAN: Heft},
    "random": {RING: RandomSearch, MAKESPAN: MakespanRandom},
    "annealing": {RING: Annealing, MAKESPAN: MakespanAnnealing},
    "order-annealing": {RING: OrderAnnealing},
    "unit-annealing": {RING: UnitAnnealing},
    "metis": {RING: Metis, MAKESPAN: MakespanMetis},
    "linear-dp": {RING: LinearDP},
    "ideal-dp": {RING: IdealDP},
    "exact": {RING: Exact},
    "dp": {MAX_LOAD: MaxLoadDP},
    "local-search": {RING: RingLocalSearch, MAX_LOAD: LocalSearch, LATENCY: LocalSearch},
}
"""Optimizers by the name that ``--method`` takes, and by objective. The first of an objective is
the heuristic, whose plan comes first."""
ONE_DEVICE = "one-device"
"""The method whose plan, where several devices may be used, is what others are compared with."""

EXACT_CELLS = 30_000
"""Nodes times devices up to which ``auto`` hands a part of its time to CP-SAT."""
CELLS_A_SECOND = 15_000
"""Cells of CP-SAT's model that are built and presolved in a second; it gets no shorter turn."""


def _always(problem: Problem, budget: Budget) -> bool:
    return True


def _no_least(problem: Problem) -> float:
    return 0.0


def _least_of_cp_sat(problem: Problem) -> float:
    return problem.graph.num_nodes * problem.hardware.num_devices / CELLS_A_SECOND


def _suits_cp_sat(problem: Problem, budget: Budget) -> bool:
    """CP-SAT counts no samples, and its model of a large problem is not worth building."""
    cells = problem.graph.num_nodes * problem.hardware.num_devices
    return cells <= EXACT_CELLS and bool(budget.seconds)


class Turn(NamedTuple):
    """One method of ``auto``."""

    name: str
    share: float
    """Share of a round."""
    suits: Callable[[Problem, Budget], bool] = _always
    least: Callable[[Problem], float] = _no_least
    """Seconds of the shortest turn; shorter ones are left out."""
    pace: float = 0.0
    """Samples a second on a graph of one node, roughly; where it is given, turns are counted in
    samples, so that what they do depends on no clock."""


AUTO: Mapping[Objective, tuple[Turn, ...]] = {
    RING: (
        Turn("ideal-dp", 0.1),
        Turn("linear-dp", 0.05, pace=1e6),
        Turn("unit-annealing", 0.3, pace=2e8),
        Turn("policy", 0.2, pace=3e5),
        Turn("local-search", 0.15, pace=6e7),
        Turn("annealing", 0.05, pace=8e5),
        Turn("exact", 0.15, _suits_cp_sat, _least_of_cp_sat),
    ),
    MAX_LOAD: (Turn("dp", 0.3), Turn("local-search", 0.7)),
    LATENCY: (Turn("local-search", 1.0),),
    MAKESPAN: (
        Turn("composed", 0.12),
        Turn("policy", 0.48, pace=4e5),
        Turn("annealing", 0.4, pace=8e5),
    ),
}
"""Turns of ``auto`` after the heuristic, round by round."""
IN_ONE_ROUND = (MAX_LOAD, LATENCY)
"""Objectives whose methods do not start from a plan: one round takes the whole budget."""


def methods_of(objective: Objective) -> dict[str, Factory]:
    """Return the methods that work on an objective, the heuristic first."""
    return {name: made[objective] for name, made in METHODS.items() if objective in made}


def methods_for(problem: Problem) -> tuple[str, ...]:
    """Return the names of the methods that work on the problem's objective."""
    return tuple(methods_of(problem.objective))
