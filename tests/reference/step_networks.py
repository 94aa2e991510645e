"""Networks of operators for the makespan objective, and what every plan of one must keep."""

import itertools

import numpy as np
import pytest
from small_graphs import graph_of

from go_rl.core import Objective, OpGraph, OpKind, Plan, Problem, load_hardware
from go_rl.costs.models import ProblemOptions, make_problem
from go_rl.graphs.readers.graph_builder import GraphBuilder, Node
from go_rl.verify.check_plan import check_plan


def priced(graph: OpGraph, devices: str = "p100x2", **options) -> Problem:
    return make_problem(
        graph, load_hardware(devices), ProblemOptions(objective=Objective.MAKESPAN, **options)
    )


def operators(seed: int, nodes: int = 24) -> OpGraph:
    """A random network of operators with FLOP and bytes, its last third backward."""
    rng = np.random.default_rng(seed)
    builder = GraphBuilder(f"operators-{seed}")
    kinds = [k for k in OpKind if k > OpKind.CONSTANT]
    for n in range(nodes):
        kind = OpKind.INPUT if n == 0 else kinds[int(rng.integers(len(kinds)))]
        size = float(rng.integers(1, 5)) * 1e6
        builder.add_node(
            Node(f"net/layer_{n // 4}/op.{n}", "Op", kind, flops=float(rng.integers(1, 9)) * 1e9,
                 bytes_accessed=3 * size, output_bytes=size, weight_bytes=size,
                 is_backward=n >= nodes * 2 // 3, is_output=n == nodes - 1)
        )  # fmt: skip
        for before in set(rng.integers(0, n, 2).tolist()) if n else ():
            builder.add_edge(before, n, float(rng.integers(1, 5)) * 1e6)
    return builder.build()


def scoped(*names: str, backward: int = 0, edges=None) -> OpGraph:
    """One node for each name, the last ``backward`` of them in the backward pass."""
    nodes = (
        Node(name, "Op", OpKind.ELEMENTWISE, flops=1e9, bytes_accessed=1e8, output_bytes=1e6,
             is_backward=n >= len(names) - backward) for n, name in enumerate(names)
    )  # fmt: skip
    pairs = edges or itertools.pairwise(range(len(names)))
    return graph_of(nodes, ((u, v, 1e6) for u, v in pairs), "scoped")


def holds(problem: Problem, plan: Plan) -> None:
    """The checker agrees, and nothing that was not asked for was decided."""
    verdict = check_plan(plan, problem)
    assert verdict.status is plan.evaluation.status, verdict.sentence
    if plan.evaluation.status.ok:
        assert verdict.value == pytest.approx(plan.value, rel=1e-9)
        assert plan.bound <= plan.value * (1 + 1e-9)
    assert plan.priority is None or "schedule" in problem.decisions
    assert plan.fusion_group is None or "fusion" in problem.decisions
