"""Proven lower bounds on latency."""

from __future__ import annotations

from go_rl.core import Problem
from go_rl.solvers.graphs.heads_tails import path_sums_before


def latency_bound(problem: Problem) -> float:
    """Return a lower bound in seconds: the critical path with each node on its best device."""
    graph = problem.graph
    offsets, edges = graph.predecessors
    ends = path_sums_before(offsets, graph.senders[edges], problem.seconds.min(axis=0))
    return float(ends.max())
