"""Random graphs, a problem on each of four topologies over the same graph, and quick plans."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from reference.problem_with import problem_with
from reference.step_problems import STREAMS, random_kinds
from small_graphs import graph_of

from go_rl.compare.portfolio import METHODS
from go_rl.core import (
    DECISIONS,
    FREE,
    RULE_SETS,
    Budget,
    Device,
    Hardware,
    Links,
    Objective,
    OpGraph,
    Plan,
    Problem,
    Topology,
)
from go_rl.graphs.readers.graph_builder import Node

TOPOLOGIES = ("ring", "full", "tree", "host")
"""A ring of chips; devices linked pairwise; a tree of devices; accelerators beside CPUs."""
DECISION_SETS = (DECISIONS, ("placement",), ("schedule",), ("fusion",), ("placement", "schedule"))


@dataclass(frozen=True)
class FewerLaunches:
    """`KernelPrices`: each node fused into a kernel saves a tenth of the whole."""

    base: np.ndarray
    """[K, N] seconds of single nodes."""

    def seconds(self, leader: np.ndarray) -> np.ndarray:
        """See `go_rl.core.KernelPrices`."""
        table, size = np.zeros_like(self.base), np.bincount(leader, minlength=len(leader))
        for node, lead in enumerate(leader):
            table[:, lead] += self.base[:, node] * (0.9 + 0.1 / size[lead])
        return table


@lru_cache(maxsize=8)
def random_graph(seed: int, most_nodes: int = 40) -> OpGraph:
    """One to ``most_nodes`` nodes, small ones most often: edges near or far, of several results,
    kinds, tied weights, colocation classes, backward nodes and results of the model."""
    rng = np.random.default_rng(seed)
    nodes = int(1 + (most_nodes - 1) * rng.random() ** 2.5)
    reach = int(rng.integers(1, nodes + 1))
    dense = min(1.0, rng.uniform(0.3, 3.0) / reach)
    edges = [
        (u, v, _size(rng), int(rng.random() < 0.2))
        for u in range(nodes)
        for v in range(u + 1, min(nodes, u + reach + 1))
        if rng.random() < dense
    ]
    kinds = random_kinds(rng, nodes, edges)
    classed, tied, backward = (rng.random() < share for share in (0.3, 0.4, 0.2))

    def node(n: int) -> Node:
        own = _size(rng)
        arrays = {f"w{a}": a + 1.0 for a in range(3) if tied and rng.random() < 0.3}
        return Node(
            n, "Op", kinds[n], output_bytes=_size(rng), weight_bytes=sum(arrays.values()) + own,
            weight_arrays=arrays,
            colocation=int(rng.integers(3)) if classed and rng.random() < 0.4 else FREE,
            is_backward=backward and n > nodes // 2, is_output=bool(rng.random() < 0.2),
        )  # fmt: skip

    return graph_of(map(node, range(nodes)), edges, f"random-{seed}")


def problem_on(topology: str, graph: OpGraph, seed: int) -> Problem:
    """A random problem over a graph; feasible more often than not."""
    rng = np.random.default_rng((seed, TOPOLOGIES.index(topology)))
    objective = {"ring": Objective.RING, "full": Objective.MAKESPAN}.get(topology)
    if objective is None:
        objective = Objective.MAX_LOAD if rng.random() < 0.5 else Objective.LATENCY
    hardware = _hardware_of(rng, topology, float(graph.weight_bytes.sum()))
    nodes, devices = graph.num_nodes, hardware.num_devices
    seconds = _seconds(rng, graph, len(hardware.kinds))
    chosen: dict[str, Any] = {}
    if objective is Objective.RING:
        chosen["rules"] = RULE_SETS[str(rng.choice(sorted(RULE_SETS)))]
        chosen["all_chips"] = devices <= nodes and bool(rng.random() < 0.15)
    if rng.random() < 0.2:
        chosen["fixed"] = {int(rng.integers(nodes)): int(rng.integers(devices))}
    if objective is Objective.MAKESPAN:
        chosen |= _step_options(rng, graph, seconds, devices)
    return problem_with(
        graph, hardware, objective, seconds, output_bytes=graph.output_bytes,
        transfer_seconds=rng.integers(0, 5, nodes) * 0.25, memory=bool(rng.random() < 0.6),
        **chosen,
    )  # fmt: skip


def _size(rng: np.random.Generator) -> float:
    """Bytes: whole numbers and fractions."""
    return float(rng.integers(0, 7)) if rng.random() < 0.7 else float(rng.uniform(0, 7))


def _hardware_of(rng: np.random.Generator, topology: str, weights: float) -> Hardware:
    """One to six devices of one or two kinds; together they hold the weights, with some slack."""
    devices = int(rng.integers(1, 7))
    cpus = int(rng.integers(1, devices + 1)) if topology == "host" else 0
    room = max(1.0, weights * rng.uniform(0.8, 3.0) / devices + rng.uniform(0, 30))
    engines = STREAMS[int(rng.integers(len(STREAMS)))] if topology == "full" else ()
    one = Device("one", 1e12, room, 1e12, engines=engines)
    two = Device("two", 1e12, 2 * room, 1e12, engines=engines)
    cpu = Device("cpu", 1e11, 2 * room, 1e11, is_cpu=True)
    mixed = rng.random() < 0.3
    chips = [two if mixed and rng.random() < 0.5 else one for _ in range(devices - cpus)]
    joined = {"ring": Topology.RING, "tree": Topology.TREE}.get(topology, Topology.FULL)
    links = Links(joined, float(rng.choice([0.5, 2.0, 3.0])), float(rng.choice([0.0, 0.25])))
    return Hardware(f"small-{topology}", (*chips, *(cpu,) * cpus), links)


def _seconds(rng: np.random.Generator, graph: OpGraph, kinds: int) -> np.ndarray:
    """[K, N] with free nodes, cheap ones that may be copied, and some that a kind cannot run."""
    shape = (kinds, graph.num_nodes)
    seconds = rng.integers(0, 9, shape) if rng.random() < 0.5 else rng.uniform(0, 9, shape)
    seconds = np.where(rng.random(graph.num_nodes) < 0.2, 1e-4 * seconds, seconds).astype(float)
    if rng.random() < 0.15:
        seconds[rng.random(shape) < 0.1] = np.inf
    seconds[:, graph.is_fed] = 0.0
    return seconds


def _step_options(
    rng: np.random.Generator, graph: OpGraph, seconds: np.ndarray, devices: int
) -> dict[str, Any]:
    decisions = (
        DECISION_SETS[int(rng.integers(len(DECISION_SETS)))] if rng.random() < 0.4 else DECISIONS
    )
    if devices == 1:
        decisions = tuple(name for name in decisions if name != "placement") or ("schedule",)
    gaps = rng.integers(0, 3, graph.num_nodes) * 0.5 * ~graph.is_fed
    chosen: dict[str, Any] = {
        "decisions": decisions,
        "kernels": FewerLaunches(seconds),
        "gap_seconds": gaps if rng.random() < 0.3 else None,
    }
    if "placement" not in decisions:
        home = rng.integers(0, devices, 1 + graph.colocation.max(initial=-1) + graph.num_nodes)
        own = np.where(graph.colocation == FREE, np.arange(graph.num_nodes), 0)
        label = np.where(graph.colocation == FREE, own, graph.num_nodes + graph.colocation)
        chosen["fixed"] = {n: int(home[k]) for n, k in enumerate(label.tolist())}
    return chosen


QUICK = {
    Objective.RING: ("greedy", "random", "annealing", "metis", "linear-dp"),
    Objective.MAX_LOAD: ("greedy", "dp", "local-search"),
    Objective.LATENCY: ("greedy", "greedy", "greedy", "local-search"),
    Objective.MAKESPAN: (
        "default", "composed", "expert", "fusion-greedy", "one-device", "heft", "metis", "random",
        "annealing",
    ),
}  # fmt: skip
"""Methods of milliseconds, the slowest of them less often."""
SAMPLES = 8


def quick_plan(problem: Problem, seed: int) -> Plan:
    """A plan of one of the objective's quick methods."""
    names = QUICK[problem.objective]
    name = names[int(np.random.default_rng(seed).integers(len(names)))]
    return plan_by(name, problem, SAMPLES, seed)


def plan_by(name: str, problem: Problem, samples: int, seed: int) -> Plan:
    """A plan of a method within some samples."""
    return METHODS[problem.objective][name]().optimize(problem, Budget(samples=samples), seed)
