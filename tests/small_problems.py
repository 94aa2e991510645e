"""Small problems written by hand, for the tests of the nouns and of the checker."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from reference.problem_with import problem_with
from tied_weights import tied

from go_rl.core import (
    FREE,
    Device,
    Evaluation,
    Hardware,
    Links,
    Objective,
    OpKind,
    Plan,
    Problem,
    Status,
    Topology,
    plan_for,
    rule_set,
)
from go_rl.graphs.readers.graph_builder import GraphBuilder, Node
from go_rl.verify.figures import plan_figures
from go_rl.verify.kernel_rules import legal_kernels
from go_rl.verify.makespan_value import replayed
from go_rl.verify.rules import legal

ACCELERATOR = Device("tile", 1e12, 100.0, 1e12)
CPU = Device("cpu", 1e11, 10.0, 1e11, is_cpu=True)
Edge = tuple[str, str] | tuple[str, str, float] | tuple[str, str, float, int]


def ring_of(chips: int, bandwidth: float = 100.0, latency: float = 0.0) -> Hardware:
    links = Links(Topology.RING, bandwidth, latency)
    return Hardware(f"small-ring{chips}", (ACCELERATOR,) * chips, links)


def boxes(accelerators: int, cpus: int) -> Hardware:
    chips = (ACCELERATOR,) * accelerators + (CPU,) * cpus
    return Hardware("boxes", chips, Links(Topology.FULL, 100.0))


def build_problem(
    nodes: str,
    edges: Sequence[Edge],
    hardware: Hardware,
    rules: str = "strict",
    per_node: Mapping[str, Any] | None = None,
    **fields: Any,
) -> Problem:
    """Nodes are single letters; ``per_node`` maps a field to a dict from letter to value."""
    given = dict(per_node or {})
    builder = GraphBuilder("small")
    for name in nodes:
        features = {k: given[k][name] for k in ("colocation",) if name in given.get(k, {})}
        builder.add_node(Node(name, "Op", OpKind.OTHER, output_bytes=1.0, **features))
    for u, v, *rest in edges:
        size, output = [*rest, *(10.0, 0)[len(rest) :]]
        builder.add_edge(builder.number_of(u), builder.number_of(v), size, int(output))
    graph = builder.build()
    column = {k: np.array([v.get(n, 0) for n in graph.names]) for k, v in given.items()}
    one = dict.fromkeys(nodes, 1.0)
    seconds = [{**one, **given.get("seconds", {})}, {**one, **given.get("cpu_seconds", {})}]
    table = np.array([[kind[n] for n in graph.names] for kind in seconds], np.float64)
    none = np.zeros(graph.num_nodes)
    settings: dict[str, Any] = {
        "rules": rule_set(rules),
        "output_bytes": graph.output_bytes,
        "weight_bytes": column.get("weights", none).astype(np.float64),
        "transfer_seconds": column.get("transfers", none).astype(np.float64),
    }
    objective, rows = fields.pop("objective", Objective.RING), table[: len(hardware.kinds)]
    problem = problem_with(graph, hardware, objective, rows, **{**settings, **fields})
    return tied(problem, [given.get("tied", {}).get(name, FREE) for name in graph.names])


def build_plan(
    problem: Problem,
    device: Sequence[int],
    replicas: Mapping[int, tuple[int, ...]] | None = None,
    value: float = 1.0,
    **fields: Any,
) -> Plan:
    home, copies = np.array(device, np.int16), dict(replicas or {})
    settings: dict[str, Any] = {"bound": 0.5 * value, "optimizer": "by-hand", "seed": 0,
                                "samples": 1, "wall_seconds": 0.0}  # fmt: skip
    if "evaluation" not in fields:
        decided = (fields.get("priority"), fields.get("fusion_group"))
        settings["evaluation"] = _evaluation(problem, home, copies, value, decided)
    return plan_for(problem, device=home, replicas=copies, **{**settings, **fields})


def _evaluation(
    problem: Problem, device: Any, replicas: Any, value: float, decided: tuple[Any, Any]
) -> Evaluation:
    """The checker's own figures beside any value; zeros for what breaks a rule."""
    steps = problem.objective is Objective.MAKESPAN
    if legal(problem, device, replicas) or (steps and legal_kernels(problem, device, *decided)):
        return Evaluation(Status.OK, value, *[np.zeros(problem.hardware.num_devices)] * 6)
    step = replayed(problem, device, *decided) if steps else None
    found = vars(plan_figures(problem, device, replicas, step)).items()
    figures = {
        name: np.array(numbers, np.float64) for name, numbers in found if numbers is not None
    }
    return Evaluation(Status.OK, value, **{"peak_bytes": figures["weight_bytes"], **figures})
