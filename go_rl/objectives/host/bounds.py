"""Proven lower bounds on max-load and latency."""

from __future__ import annotations

import numpy as np

from go_rl.core import Problem
from go_rl.core.graph.heads_tails import path_sums_before
from go_rl.objectives.host.hypergraph import Contraction, contract_problem
from go_rl.objectives.host.max_load_cut_bound import fractional_refutes, seconds_by_side

ROUNDING = 1e-9
"""Bounds are lowered by this share, so that rounding never lifts one above a real plan."""
STEPS = 60
"""Halvings of the interval that holds the fractional bound."""


def max_load_bound(problem: Problem) -> float:
    """Return a lower bound in seconds on the largest load of any legal plan, by work alone."""
    return fractional_bound(contract_problem(problem)) * (1.0 - ROUNDING)


def fractional_bound(contraction: Contraction) -> float:
    """Return the least T that work alone does not refute: largest block, and all work over all
    devices with CPUs taking what is cheapest for them."""
    on_cpu, on_tile = seconds_by_side(contraction, contraction.hypergraph)
    fastest = np.minimum(on_cpu, on_tile)
    low, high = float(fastest.max()), float(fastest.sum())
    if not np.isfinite(high):
        return 0.0
    if not fractional_refutes(contraction, contraction.hypergraph, low):
        return low
    for _ in range(STEPS):
        middle = 0.5 * (low + high)
        if fractional_refutes(contraction, contraction.hypergraph, middle):
            low = middle
        else:
            high = middle
    return low


def latency_bound(problem: Problem) -> float:
    """Return a lower bound in seconds: the critical path with each node on its best device."""
    graph = problem.graph
    offsets, edges = graph.predecessors
    ends = path_sums_before(offsets, graph.senders[edges], problem.seconds.min(axis=0))
    return float(ends.max())
