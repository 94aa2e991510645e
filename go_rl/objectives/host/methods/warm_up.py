"""Compiles a search before its clock starts: once an installation, then cached."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from go_rl.core import Device, Hardware, Links, Objective, OpKind, Problem, Topology
from go_rl.costs.models import ProblemOptions, make_problem
from go_rl.graphs.readers.graph_builder import GraphBuilder, Node

NODES = 12
"""Enough for a coarse level above the single blocks."""


@cache
def warm_up(search: Callable[[Problem], object], objective: Objective) -> None:
    """Run ``search`` on a small chain, the first time that it is called in this process."""
    search(_chain(objective))


def _chain(objective: Objective) -> Problem:
    builder = GraphBuilder("warm-up")
    for n in range(NODES):
        builder.add_node(Node(n, "Op", OpKind.OTHER, flops=1.0, output_bytes=1.0, weight_bytes=1.0))
        if n:
            builder.add_edge(n - 1, n, 1.0)
    tile = Device("tile", 1.0, float(NODES), 1.0)
    cpu = Device("cpu", 1.0, 1.0, 1.0, is_cpu=True)
    hardware = Hardware("warm-up", (tile, tile, cpu), Links(Topology.FULL, 1.0))
    return make_problem(builder.build(), hardware, ProblemOptions(objective=objective))
