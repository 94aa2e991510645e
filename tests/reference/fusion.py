"""Fusion by priority, merge by merge: each is tried on the whole graph and kept if it is legal.

No order of kernels is kept; a cycle is found by networkx. Sizes are those of small graphs, which
meet no limit.
"""

from collections.abc import Sequence

import networkx as nx

from go_rl.core import OpGraph, OpKind

LIGHT = {"ELEMENTWISE", "MOVEMENT", "GATHER"}
HEAVY = {"MATMUL", "CONVOLUTION"}


def fits(producer: int, consumer: int) -> bool:
    """Whether two kinds may share a kernel; the table of docs/objectives.md."""
    one, two = OpKind(int(producer)).name, OpKind(int(consumer)).name
    if one in LIGHT:
        return two in LIGHT | {"REDUCTION"}
    return one in HEAVY and two in {"ELEMENTWISE", "MOVEMENT"}


def acyclic(graph: OpGraph, leader: Sequence[int]) -> bool:
    """Whether no kernel waits for itself through others."""
    nodes = nx.DiGraph(zip(graph.senders.tolist(), graph.receivers.tolist(), strict=True))
    nodes.add_nodes_from(range(graph.num_nodes))
    groups = [[n for n, lead in enumerate(leader) if lead == k] for k in set(leader)]
    return nx.is_directed_acyclic_graph(nx.quotient_graph(nodes, groups))


def legal(graph: OpGraph, leader: Sequence[int], place: Sequence[int]) -> bool:
    """Whether kernels keep every rule but the limits of size."""
    for u, v in zip(graph.senders.tolist(), graph.receivers.tolist(), strict=True):
        if leader[u] == leader[v] and not fits(graph.kind[u], graph.kind[v]):
            return False
    for lead in set(leader):
        nodes = [n for n, other in enumerate(leader) if other == lead]
        heavy = sum(OpKind(int(graph.kind[n])).name in HEAVY for n in nodes)
        if heavy > 1 or len({place[n] for n in nodes}) > 1:
            return False
    return acyclic(graph, leader)


def fuse(graph: OpGraph, priority: Sequence[int], place: Sequence[int]) -> list[int]:
    """Return the lowest node of each node's kernel. ``place``: equal values may share a kernel."""
    leader = list(range(graph.num_nodes))
    for u in sorted(range(graph.num_nodes), key=lambda n: (-priority[n], -n)):
        consumers = graph.receivers[graph.senders == u].tolist()
        for v in sorted(set(consumers)):
            if priority[u] <= 0 or not fits(graph.kind[u], graph.kind[v]):
                continue
            low = min(leader[u], leader[v])
            merged = [low if lead in (leader[u], leader[v]) else lead for lead in leader]
            if legal(graph, merged, place):
                leader = merged
    return leader
