"""`RING_SEARCH`: methods of the ring."""

from __future__ import annotations

from go_rl.core import Budget, Problem
from go_rl.objectives.common.kit import SearchKit, Turn
from go_rl.objectives.ring.compilation import PARTS_OF, RingCompilation
from go_rl.objectives.ring.exhaustive import exhaust_ring, is_small_ring
from go_rl.objectives.ring.methods.annealing import Annealing
from go_rl.objectives.ring.methods.exact import Exact
from go_rl.objectives.ring.methods.ideal_search import IdealDP
from go_rl.objectives.ring.methods.linear_dp import LinearDP
from go_rl.objectives.ring.methods.local_search import RingLocalSearch
from go_rl.objectives.ring.methods.metis import Metis
from go_rl.objectives.ring.methods.order_search import OrderSearch
from go_rl.objectives.ring.methods.random_search import RandomSearch
from go_rl.objectives.ring.methods.unit_annealing import UnitAnnealing
from go_rl.objectives.ring.simulate.memory import confirm_memory

EXACT_CELLS = 30_000
"""Nodes times chips up to which ``auto`` hands a part of its time to CP-SAT."""
CELLS_A_SECOND = 15_000
"""Cells of CP-SAT's model that are built and presolved in a second; it gets no shorter turn."""


def cells_of(problem: Problem) -> int:
    """Return nodes times chips."""
    return problem.graph.num_nodes * problem.hardware.num_devices


def _least_of_cp_sat(problem: Problem) -> float:
    return cells_of(problem) / CELLS_A_SECOND


def _suits_cp_sat(problem: Problem, budget: Budget) -> bool:
    """CP-SAT counts no samples, and its model of a large problem is not worth building."""
    return cells_of(problem) <= EXACT_CELLS and bool(budget.seconds)


RING_SEARCH = SearchKit(
    methods={
        "random": RandomSearch,
        "annealing": Annealing,
        "order-search": OrderSearch,
        "unit-annealing": UnitAnnealing,
        "metis": Metis,
        "linear-dp": LinearDP,
        "ideal-dp": IdealDP,
        "exact": Exact,
        "local-search": RingLocalSearch,
    },
    references=("greedy",),
    turns=(
        Turn("ideal-dp", 0.05),
        Turn("linear-dp", 0.05, pace=1e6),
        # Its search goes on from turn to turn, whatever others find meanwhile.
        Turn("order-search", 0.25, pace=4e5, lightest=0.5, learned="order-policy"),
        Turn("local-search", 0.4, pace=6e7, lightest=0.7),
        Turn("unit-annealing", 0.15, pace=2e8, lightest=0.5),
        Turn("policy", 0.05, pace=3e5, given="ring"),
        Turn("exact", 0.1, _suits_cp_sat, _least_of_cp_sat),
    ),
    exhaust=exhaust_ring,
    is_small=is_small_ring,
    compilation=RingCompilation,
    parts=PARTS_OF,
    confirm_memory=confirm_memory,
)
"""Search on a ring."""
