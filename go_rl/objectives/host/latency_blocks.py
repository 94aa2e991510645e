"""Blocks of the latency objective: nodes that no contiguous split can separate.

Nodes of one colocation class, and classes that feed each other in a cycle: on two accelerators, or
split between an accelerator and CPUs, they would leave a subgraph and come back.
"""

from __future__ import annotations

from dataclasses import dataclass

import networkx as nx
import numpy as np
from jaxtyping import Int32

from go_rl.core import Problem
from go_rl.objectives.host.hypergraph import Contraction, contract, contract_problem

Edges = tuple[Int32[np.ndarray, "_"], Int32[np.ndarray, "_"]]
"""Senders and receivers, distinct pairs sorted by sender."""


@dataclass(frozen=True, eq=False)
class LatencyBlocks:
    """The problem on blocks that form an acyclic graph, numbered in topological order."""

    contraction: Contraction
    edges: Edges
    """Block pairs joined by a tensor."""


def latency_blocks(problem: Problem) -> LatencyBlocks:
    """Return the blocks of ``problem`` and the acyclic graph between them."""
    contraction = contract_problem(problem)
    graph, block = problem.graph, contraction.block
    blocks = contraction.hypergraph.size.shape[0]
    edges = _distinct(block[graph.senders], block[graph.receivers], blocks)
    cluster = _components(edges, blocks)
    hypergraph = contract(contraction.hypergraph, cluster)
    limit = contraction.devices.limit
    hypergraph.allowed[hypergraph.size[:, None] > limit[None, :]] = False
    whole = Contraction(hypergraph, contraction.devices, cluster[block])
    joined = _distinct(cluster[edges[0]], cluster[edges[1]], int(cluster.max()) + 1)
    return LatencyBlocks(whole, joined)


def _distinct(
    senders: Int32[np.ndarray, "X"], receivers: Int32[np.ndarray, "X"], blocks: int
) -> Edges:
    apart = senders != receivers
    keys = np.unique(senders[apart].astype(np.int64) * blocks + receivers[apart])
    return (keys // blocks).astype(np.int32), (keys % blocks).astype(np.int32)


def _components(edges: Edges, blocks: int) -> Int32[np.ndarray, "B"]:
    """Strongly connected component of each block, numbered in topological order."""
    senders, receivers = edges
    if (senders < receivers).all():
        return np.arange(blocks, dtype=np.int32)
    graph = nx.DiGraph()
    graph.add_nodes_from(range(blocks))
    graph.add_edges_from(zip(senders.tolist(), receivers.tolist(), strict=True))
    quotient = nx.condensation(graph)
    members = [sorted(quotient.nodes[c]["members"]) for c in range(len(quotient))]
    rank = np.empty(blocks, np.int32)
    in_order = nx.lexicographical_topological_sort(quotient, lambda c: members[c][0])
    for place, c in enumerate(in_order):
        rank[members[c]] = place
    return rank
