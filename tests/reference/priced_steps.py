"""Small makespan problems priced by the analytical model, which also prices fused kernels."""

from dataclasses import replace

import numpy as np
from reference.step_problems import STREAMS, random_edges, random_kinds
from small_graphs import graph_of

from go_rl.core import Device, Hardware, Links, Objective, OpGraph, Problem, Topology
from go_rl.costs.models import Analytical, ProblemOptions, make_problem
from go_rl.costs.models.analytical import Efficiency
from go_rl.graphs.readers.graph_builder import Node

EVEN = Efficiency(1.0, 1.0, 1.0, 1.0, 1.0, 1.0)
TILE = Device("tile", 1.0, 1e9, 1.0, launch_seconds=0.5)
"""A FLOP takes a second, so does a byte, a launch half of one."""


def priced_graph(kinds, edges, flops, accessed, is_output=()) -> OpGraph:
    """Edges are (u, v, bytes[, result])."""
    nodes = (
        Node(n, "Op", kind, flops=flops[n], bytes_accessed=accessed[n], is_output=n in is_output)
        for n, kind in enumerate(kinds)
    )
    return graph_of(nodes, edges)


def priced(graph: OpGraph, chips=(TILE,), shares: Efficiency = EVEN, **options) -> Problem:
    hardware = Hardware("boxes", tuple(chips), Links(Topology.FULL, options.pop("bandwidth", 1.0)))
    model = Analytical({"tile": shares, "other": EVEN})
    chosen = ProblemOptions(objective=Objective.MAKESPAN, cost_model=model, **options)
    return make_problem(graph, hardware, chosen)


def random_problem(seed: int, most_nodes: int) -> Problem:
    """Any kinds, few FLOP and bytes, one or two devices of one or two kinds; some nodes access
    fewer bytes than their edges carry."""
    rng = np.random.default_rng(seed)
    nodes, devices = int(rng.integers(1, most_nodes + 1)), int(rng.integers(1, 3))
    edges = random_edges(rng, nodes)
    sizes = {(u, o): size for u, _, size, o in edges}
    edges = [(u, v, sizes[u, o], o) for u, v, _, o in edges]
    kinds = random_kinds(rng, nodes, edges)
    accessed = rng.integers(0, 6, nodes).astype(float)
    if rng.random() < 0.6:
        for _, v, size, _ in edges:
            accessed[v] += size
        for (u, _), size in sizes.items():
            accessed[u] += size
    flops = rng.integers(0, 12, nodes).astype(float)
    kept = np.flatnonzero(rng.random(nodes) < 0.2).tolist()
    engines = STREAMS[int(rng.integers(len(STREAMS)))] if rng.random() < 0.4 else ()
    tile = replace(TILE, engines=engines, launch_seconds=float(rng.choice([0.0, 0.5, 2.0])))
    other = Device("other", 2.0, 1e9, 0.7, launch_seconds=1.0)
    chips = (tile, other if rng.random() < 0.3 else tile)[:devices]
    shares = EVEN if rng.random() < 0.5 else Efficiency(0.9, 0.6, 0.4, 0.3, 0.2, 0.8)
    gap = np.array(rng.integers(0, 3, nodes), float) if rng.random() < 0.3 else None
    graph = priced_graph(kinds, edges, flops.tolist(), accessed.tolist(), kept)
    return priced(graph, chips, shares, gap_seconds=gap, bandwidth=2.0)
