"""Small ring problems for the stepping interface, and their legal plans by brute force."""

import itertools

import numpy as np
from reference.problem_with import problem_with
from small_graphs import graph_of

from go_rl.core import FREE, Device, Hardware, Links, Objective, OpKind, Problem, Topology, rule_set
from go_rl.graphs.readers.graph_builder import Node
from go_rl.solvers.replication import place_copies, replicas_of, replicated_nodes
from go_rl.verify.rules import Violation, legal


def ring_problem(
    nodes: int,
    edges: list[tuple[int, int]],
    chips: int,
    rules: str = "strict",
    weights: list[float] | None = None,
    memory_bytes: float = 100.0,
    **options,
) -> Problem:
    """Every node takes one second, unless ``seconds`` says otherwise; edges carry one byte."""
    colocation = options.pop("colocation", [FREE] * nodes)
    kinds = options.pop("kinds", [OpKind.OTHER] * nodes)
    listed = (Node(n, "Op", kinds[n], flops=1.0, colocation=colocation[n]) for n in range(nodes))
    graph = graph_of(listed, ((u, v, 1.0) for u, v in edges))
    chip = Device("tiny", 1.0, memory_bytes, 1.0)
    seconds = np.array([options.pop("seconds", [1.0] * nodes)], np.float64)
    options["edge_bytes"] = np.full(graph.num_edges, options.get("edge_bytes", 1e-3))
    return problem_with(
        graph, Hardware("tiny-ring", (chip,) * chips, Links(Topology.RING, 1.0)), Objective.RING,
        seconds, rules=rule_set(rules), weight_bytes=np.array(weights or [0.0] * nodes), **options,
    )  # fmt: skip


def random_ring(seed: int, rules: str = "strict") -> Problem:
    """Four to six nodes on two or three chips, sometimes with classes, pins and little memory."""
    rng = np.random.default_rng(seed)
    nodes, chips = int(rng.integers(4, 7)), int(rng.integers(2, 4))
    pairs = itertools.combinations(range(nodes), 2)
    edges = [pair for pair in pairs if rng.random() < 0.35]
    coloured = rng.random() < 0.3
    return ring_problem(
        nodes,
        edges,
        chips,
        rules,
        weights=rng.integers(0, 5, nodes).astype(float).tolist(),
        memory_bytes=float(rng.integers(5, 12)),
        colocation=[int(c) if coloured else FREE for c in rng.integers(-1, 2, nodes)],
        fixed={int(rng.integers(nodes)): int(rng.integers(chips))} if rng.random() < 0.3 else {},
        all_chips=bool(rng.random() < 0.3),
    )


def legal_plans(problem: Problem) -> np.ndarray:
    """[plans, N] every legal plan without copies, by the independent checker, which need not look
    at those in which a tensor flows backwards: most."""
    chips, graph = problem.hardware.num_devices, problem.graph
    plans = np.array(list(itertools.product(range(chips), repeat=graph.num_nodes)), np.int16)
    plans = plans[(plans[:, graph.senders] <= plans[:, graph.receivers]).all(axis=1)]
    return plans[[not legal(problem, plan, {}) for plan in plans]]


def broken(problem: Problem, device: np.ndarray) -> tuple[Violation, ...]:
    """What the checker finds in a partition whose copies are wherever they are read."""
    home, present = place_copies(problem, replicated_nodes(problem), device)
    return legal(problem, home, replicas_of(home, present))
