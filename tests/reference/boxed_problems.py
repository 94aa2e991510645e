"""Small random problems for max-load and latency: any mix of devices, classes, pins and memory."""

import numpy as np
from reference.problem_with import problem_with

from go_rl.core import FREE, Device, Hardware, Links, Objective, OpKind, Problem, Topology
from go_rl.graphs.readers.graph_builder import GraphBuilder, Node


def random_problem(seed: int, objective: Objective, nodes: int, devices: int) -> Problem:
    """A problem of ``nodes`` nodes; small whole numbers, so that sums are exact."""
    rng = np.random.default_rng(seed)
    hardware = _hardware_of(rng, devices)
    kinds = len(hardware.kinds)
    seconds = rng.integers(1, 10, (kinds, nodes)).astype(float)
    if rng.random() < 0.4:
        seconds[rng.integers(kinds), rng.random(nodes) < 0.3] = np.inf
    graph = _graph(rng, nodes)
    size = rng.integers(0, 6, nodes).astype(float)
    fixed = {int(rng.integers(nodes)): int(rng.integers(devices))} if rng.random() < 0.15 else {}
    return problem_with(
        graph, hardware, objective, seconds, weight_bytes=size, fixed=fixed,
        edge_bytes=np.zeros(graph.num_edges),
        transfer_seconds=rng.integers(0, 5, nodes).astype(float), memory=bool(rng.random() < 0.6),
    )  # fmt: skip


def _hardware_of(rng: np.random.Generator, devices: int) -> Hardware:
    cpus = int(rng.integers(0, devices + 1))
    small = Device("small", 1e12, float(rng.integers(4, 14)), 1e12)
    large = Device("large", 1e12, float(rng.integers(8, 20)), 1e12)
    cpu = Device("cpu", 1e11, 1.0, 1e11, is_cpu=True)
    accelerators = [small if rng.random() < 0.6 else large for _ in range(devices - cpus)]
    return Hardware("boxes", (*accelerators, *(cpu,) * cpus), Links(Topology.FULL, 1.0))


def _graph(rng: np.random.Generator, nodes: int):
    builder = GraphBuilder("random")
    classed = rng.random() < 0.4
    backward = nodes * 2 // 3 if rng.random() < 0.3 else nodes
    for n in range(nodes):
        colour = int(rng.integers(3)) if classed and rng.random() < 0.5 else FREE
        builder.add_node(Node(n, "Op", OpKind.OTHER, colocation=colour, is_backward=n >= backward))
    dense = rng.uniform(0.1, 0.6)
    for u in range(nodes):
        for v in range(u + 1, nodes):
            if rng.random() < dense:
                builder.add_edge(u, v, 1.0)
                if rng.random() < 0.1:
                    builder.add_edge(u, v, 1.0, 1)
    return builder.build()


def random_devices(seed: int, problem: Problem, plans: int) -> np.ndarray:
    """[plans, N] random devices; most keep colocation classes and pins together."""
    rng = np.random.default_rng(seed)
    nodes, chips = problem.graph.num_nodes, problem.hardware.num_devices
    devices = rng.integers(0, chips, (plans, nodes))
    for row in devices:
        if rng.random() < 0.8:
            colour = problem.graph.colocation
            home = rng.integers(0, chips, 3)
            row[:] = np.where(colour == FREE, row, home[np.maximum(colour, 0)])
            for n, d in problem.fixed.items():
                row[n] = d
        if rng.random() < 0.4:
            row[:] = np.where(problem.graph.colocation == FREE, np.sort(row), row)
    return devices.astype(np.int16)
