"""Small random ring problems: any directed acyclic graph, classes, pins, weights and rule set."""

from dataclasses import replace
from functools import lru_cache

import numpy as np
from reference.problem_with import problem_with
from reference.ring_rules import Partition, copied_by, partitions

from go_rl.core import (
    FREE,
    RULE_SETS,
    Device,
    Hardware,
    Links,
    Objective,
    OpGraph,
    OpKind,
    Problem,
    Topology,
)
from go_rl.graphs.readers.graph_builder import GraphBuilder, Node
from go_rl.solvers.replication import replicated_nodes

RULES = tuple(RULE_SETS.values())
UNIT = 30
"""Heavy weights are multiples of this; light ones are small enough to be copied."""


def random_ring(seed: int, most_nodes: int = 7, most_chips: int = 4) -> Problem:
    """Two to ``most_nodes`` nodes on two to ``most_chips`` chips; whole numbers throughout."""
    rng = np.random.default_rng(seed)
    graph = random_graph(seed // 4, most_nodes)
    nodes, chips = graph.num_nodes, int(rng.integers(2, most_chips + 1))
    weights = rng.integers(0, 6, nodes) * (rng.random(nodes) < rng.uniform(0.3, 1.0)) * UNIT
    light = rng.random(nodes) < 0.4
    weights[light] = rng.integers(0, 4, int(light.sum()))
    arrays = len(graph.tied_bytes)
    tied = (rng.integers(1, 6, 2) * UNIT ** rng.integers(0, 2, 2))[:arrays].astype(np.float64)
    weights += np.bincount(graph.tied_node, tied[graph.tied_array], nodes).astype(np.int64)
    all_chips = bool(rng.random() < 0.25) and chips <= nodes
    pins = rng.permutation(nodes)[: int(rng.integers(0, 3))] if rng.random() < 0.3 else []
    seconds = rng.integers(1, 9, nodes).astype(np.float64)
    seconds[rng.random(nodes) < 0.3] = 0.0
    tight = rng.uniform(0.9, 2.5) * max(1, int(weights.sum())) / chips
    room = max(float(weights.max()), float(np.floor(tight)), 1.0)
    hardware = Hardware(
        "small",
        tuple(Device("tile", 1.0, room + float(rng.integers(0, UNIT)), 1.0) for _ in range(chips)),
        Links(Topology.RING, 4.0, float(rng.integers(0, 2))),
    )
    return problem_with(
        graph, hardware, Objective.RING, seconds[None], tied_bytes=tied, all_chips=all_chips,
        weight_bytes=weights.astype(np.float64), rules=RULES[int(rng.integers(len(RULES)))],
        memory=bool(rng.random() < 0.6), fixed={int(n): int(rng.integers(chips)) for n in pins},
    )  # fmt: skip


@lru_cache(maxsize=64)
def random_graph(seed: int, most_nodes: int) -> OpGraph:
    """A graph with some edges of several results, classes and tied weights."""
    rng = np.random.default_rng(seed)
    nodes = int(rng.integers(2, most_nodes + 1))
    builder = GraphBuilder("random")
    classed = rng.random() < 0.35
    for n in range(nodes):
        colour = int(rng.integers(3)) if classed and rng.random() < 0.6 else FREE
        builder.add_node(Node(n, "Op", OpKind.OTHER, colocation=colour))
    dense = rng.uniform(0.0, 0.8)
    for u in range(nodes):
        for v in range(u + 1, nodes):
            if rng.random() < dense:
                builder.add_edge(u, v, float(rng.integers(0, 9)), int(rng.random() < 0.2))
    graph = builder.build()
    if rng.random() < 0.4:
        reads = rng.random((nodes, 2)) < 0.4
        readers, arrays = np.nonzero(reads[:, reads.sum(axis=0) > 1])
        graph = replace(
            graph, tied_node=readers.astype(np.int32), tied_array=arrays.astype(np.int32),
            tied_bytes=np.zeros(len(np.unique(arrays))),
        )  # fmt: skip
    return graph


def feasible(
    count: int, first: int = 0, most: int | None = None, **sizes: int
) -> list[tuple[Problem, list[Partition]]]:
    """So many problems with two to ``most`` legal partitions, and all of these."""
    found = []
    for seed in range(first, first + 60 * count):
        problem = random_ring(seed, **sizes)
        every = list(partitions(problem, copied_by(replicated_nodes(problem))))
        if 1 < len(every) <= (most or len(every)):
            found.append((problem, every))
        if len(found) == count:
            return found
    raise AssertionError("too few problems are feasible")
