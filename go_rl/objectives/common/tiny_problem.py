"""`tiny_problem`: a problem on which methods are compiled."""

from __future__ import annotations

from go_rl.core import Objective, OpKind, Problem, Topology, load_hardware, rule_set
from go_rl.costs.models import Analytical, ProblemOptions, make_problem
from go_rl.graphs.readers.graph_builder import GraphBuilder, Node


def tiny_problem(objective: Objective, strict: bool = False) -> Problem:
    """Return a diamond of four operators on two devices: each function has something to do, and
    no split meets the bound, which would end a search before it compiles its moves."""
    builder = GraphBuilder("warm-up")
    for i in range(4):
        flops = 1e6 if i else 2e6
        node = Node(i, "warm-up", OpKind.MATMUL, flops=flops, output_bytes=8.0, weight_bytes=8.0)
        builder.add_node(node)
    for u, v in ((0, 1), (0, 2), (1, 3), (2, 3)):
        builder.add_edge(u, v, 8.0)
    rules = rule_set("strict" if strict else "default")
    ring = Topology.RING in objective.traits.topologies
    hardware = load_hardware("ring2" if ring else "p100x2")
    options = ProblemOptions(objective=objective, rules=rules, cost_model=Analytical())
    return make_problem(builder.build(), hardware, options)
