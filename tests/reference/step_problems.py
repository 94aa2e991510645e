"""Small makespan problems: by hand, with one second a byte, and at random with many ties."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import small_graphs
from reference.problem_with import problem_with

from go_rl.core import (
    FREE,
    Device,
    Engine,
    Hardware,
    Links,
    Objective,
    OpGraph,
    OpKind,
    Problem,
    Topology,
)
from go_rl.core.decisions import Decisions
from go_rl.graphs.cutting.fusion import Fuser
from go_rl.graphs.readers.graph_builder import Node

Edge = tuple[int, int, float] | tuple[int, int, float, int]
KINDS = (OpKind.ELEMENTWISE, OpKind.ELEMENTWISE, OpKind.MOVEMENT, OpKind.GATHER, OpKind.MATMUL,
         OpKind.CONVOLUTION, OpKind.REDUCTION, OpKind.OTHER)  # fmt: skip
STREAMS: tuple[tuple[Engine, ...], ...] = (
    (),
    (Engine("stream", 2),),
    (Engine("core", 2, split=True),),
    (Engine("core", 3, split=True),),
    (Engine("rest"), Engine("matrix", 1, ("matmul", "convolution"))),
    (Engine("vector", 2, ("elementwise", "gather")), Engine("rest", 2, split=True)),
)


@dataclass(frozen=True)
class Summed:
    """`KernelPrices`: a kernel takes what its nodes take together."""

    base: np.ndarray
    """[K, N] seconds of single nodes."""

    def seconds(self, leader: np.ndarray) -> np.ndarray:
        """See `go_rl.core.KernelPrices`."""
        table = np.zeros_like(self.base)
        for node, lead in enumerate(leader):
            table[:, lead] += self.base[:, node]
        return table


def step_problem(
    seconds: Sequence[float] | Sequence[Sequence[float]],
    edges: Sequence[Edge] = (),
    devices: int = 1,
    **options: Any,
) -> Problem:
    """Operators of these seconds (a row for each kind of device); a byte takes a second on a link.

    Memory is not checked unless ``memory_bytes`` is given. Other ``options`` are named as in
    `Device`, `Links`, `Node` and `Problem`, one entry a node where it is one's own.
    """
    table = np.atleast_2d(np.array(seconds, np.float64))
    graph = graph_of(table.shape[1], edges, options)
    room, engines = options.pop("memory_bytes", None), options.pop("engines", ())
    kinds = [Device(f"kind{k}", 1.0, room or 1e9, 1.0, engines=engines) for k in range(len(table))]
    chips = options.pop("chips", [kinds[min(d, len(kinds) - 1)] for d in range(devices)])
    links = Links(Topology.FULL, options.pop("bandwidth", 1.0), options.pop("latency", 0.0))
    gap, made = options.pop("gap", None), options.pop("output_bytes", [0.0] * graph.num_nodes)
    settings: dict[str, Any] = {
        "memory": room is not None,
        "output_bytes": np.array(made, np.float64),
        "kernels": Summed(table),
        "gap_seconds": None if gap is None else np.array(gap, np.float64),
    }
    return problem_with(
        graph, Hardware("boxes", tuple(chips), links), Objective.MAKESPAN, table,
        **{**settings, **options},
    )  # fmt: skip


def graph_of(nodes: int, edges: Sequence[Edge], options: dict[str, Any]) -> OpGraph:
    """A graph of these edges; takes what describes nodes out of ``options``."""
    kinds = options.pop("kinds", [OpKind.OTHER] * nodes)
    names = options.pop("names", range(nodes))
    weights, tied = options.pop("weights", [0.0] * nodes), options.pop("tied", [None] * nodes)
    kept, colour = options.pop("is_output", [False] * nodes), options.pop("colocation", None)
    shared = {key: min(w for w, k in zip(weights, tied, strict=True) if k == key) for key in tied}
    arrays = [{} if key is None else {key: shared[key]} for key in tied]
    made = (
        Node(name, "Op", kinds[n], weight_bytes=weights[n], weight_arrays=arrays[n],
             is_output=kept[n], colocation=FREE if colour is None else colour[n])
        for n, name in enumerate(names)
    )  # fmt: skip
    return small_graphs.graph_of(made, edges, "steps")


def decided(device: Sequence[int], priority=None, leader=None) -> Decisions:
    """A batch of one plan."""
    return Decisions(
        np.array([device], np.int16),
        None if priority is None else np.array([priority], np.int64),
        None if leader is None else np.array([leader], np.int64),
    )


def random_edges(rng: np.random.Generator, nodes: int, most: int = 6) -> list[Edge]:
    """Forward edges of small whole sizes, some of second results and of zero bytes."""
    dense = rng.uniform(0.05, 0.6)
    return [
        (u, v, float(rng.integers(0, most)), int(rng.random() < 0.25))
        for u in range(nodes)
        for v in range(u + 1, nodes)
        if rng.random() < dense
    ]


def random_kinds(rng: np.random.Generator, nodes: int, edges: Sequence[Edge]) -> list[OpKind]:
    """Any kinds; some nodes that read nothing are inputs and constants."""
    reads = {v for _, v, *_ in edges}
    kinds = [KINDS[int(i)] for i in rng.integers(0, len(KINDS), nodes)]
    for n in range(nodes):
        if n not in reads and rng.random() < 0.35:
            kinds[n] = OpKind.INPUT if rng.random() < 0.5 else OpKind.CONSTANT
    return kinds


def random_step(seed: int, most_nodes: int = 14, **options: Any) -> Problem:
    """One to ``most_nodes`` nodes on one to four devices of one or two kinds; small numbers."""
    rng = np.random.default_rng(seed)
    nodes, devices = int(rng.integers(1, most_nodes + 1)), int(rng.integers(1, 5))
    edges = random_edges(rng, nodes)
    rows = 1 + int(devices > 1 and rng.random() < 0.3)
    seconds = rng.integers(0, 5, (rows, nodes)).astype(np.float64)
    if rng.random() < 0.15:
        seconds[rng.random(seconds.shape) < 0.1] = np.inf
    kinds = random_kinds(rng, nodes, edges)
    seconds[:, [k <= OpKind.CONSTANT for k in kinds]] = 0.0
    tied = [("t0", "t1", None)[int(i)] for i in rng.integers(0, 3, nodes)]
    own = rng.integers(0, 4, nodes)
    weights = [{"t0": 5.0, "t1": 2.0}.get(str(t), float(w)) for t, w in zip(tied, own, strict=True)]
    engines = STREAMS[int(rng.integers(len(STREAMS)))] if rng.random() < 0.6 else ()
    chosen: dict[str, Any] = {
        "kinds": kinds,
        "weights": weights,
        "tied": tied,
        "is_output": (rng.random(nodes) < 0.2).tolist(),
        "output_bytes": rng.integers(0, 9, nodes).astype(float).tolist(),
        "gap": rng.integers(0, 3, nodes).tolist() if rng.random() < 0.3 else None,
        "latency": float(rng.choice([0.0, 0.0, 1.0, 0.5])),
        "bandwidth": float(rng.choice([1.0, 2.0, 3.0])),
        "engines": engines,
        "memory_bytes": float(rng.integers(8, 60)) if rng.random() < 0.5 else None,
    }
    return step_problem(seconds, edges, devices, **{**chosen, **options})


def random_plans(
    seed: int, problem: Problem, plans: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """[plans, N] devices, priorities with many ties, and leaders of kernels that are legal."""
    rng = np.random.default_rng(seed)
    shape = (plans, problem.graph.num_nodes)
    device = rng.integers(0, problem.hardware.num_devices, shape).astype(np.int16)
    priority = rng.integers(-2, 3, shape)
    wish = rng.integers(-1, 4, shape) * (rng.random((plans, 1)) < 0.7)
    return device, priority, Fuser(problem.graph).leaders(wish, device)
