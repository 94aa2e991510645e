"""Graphs and plans that the tests of the page share."""

from functools import cache

import numpy as np
from small_graphs import row_of

from go_rl.core import Objective, OpGraph, OpKind, Plan, Problem, load_hardware, plan_for
from go_rl.core.decisions import Decisions
from go_rl.costs.models import Analytical, ProblemOptions, make_problem
from go_rl.graphs.readers.graph_builder import Node
from go_rl.graphs.zoo import zoo_graph
from go_rl.objectives.kits import kit_of


def named_graph(*names: str, op_type: str = "Op") -> OpGraph:
    """A chain of operators with these names."""
    nodes = (Node(name, op_type, OpKind.OTHER, flops=1e6, output_bytes=4.0) for name in names)
    return row_of(nodes, 4.0, "named")


def planned(problem: Problem, device: list[int]) -> Plan:
    """A plan of these devices, evaluated."""
    workspace = kit_of(problem).workspace(problem)
    chosen = Decisions(np.array([device], np.int16))
    return plan_for(
        problem, device=chosen.device[0], evaluation=workspace.detail(chosen), bound=0.0,
        optimizer="by hand", seed=0, samples=1, wall_seconds=0.0, replicas={},
    )  # fmt: skip


def problem_on(graph: OpGraph, hardware: str, objective: Objective, **options: object) -> Problem:
    chosen = ProblemOptions(objective, cost_model=Analytical(), **options)  # pyright: ignore[reportArgumentType]
    return make_problem(graph, load_hardware(hardware), chosen)


@cache
def zoo_plan(name: str, hardware: str, objective: Objective) -> tuple[Problem, Plan]:
    """A graph of the zoo, cut in topological order into as many parts as there are devices."""
    problem = problem_on(zoo_graph(name), hardware, objective)
    count = problem.graph.num_nodes
    parts = np.arange(count) * problem.hardware.num_devices // count
    return problem, planned(problem, parts.tolist())
