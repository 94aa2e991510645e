"""Proven lower bounds on latency."""

from __future__ import annotations

from go_rl.core import Problem


def latency_bound(problem: Problem) -> float:
    """Return a lower bound in seconds: the critical path with each node on its best device."""
    graph = problem.graph
    fastest = problem.seconds.min(axis=0)
    end = fastest.copy()
    offsets, edges = graph.predecessors
    for n in range(graph.num_nodes):
        senders = graph.senders[edges[offsets[n] : offsets[n + 1]]]
        if senders.size:
            end[n] += end[senders].max()
    return float(end.max())
