"""Compiles the kernels of a search before its clock starts: once an installation, then cached."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from go_rl.core import Chip, Hardware, Links, Objective, OpKind, Problem, Topology, rule_set
from go_rl.readers.graph_builder import GraphBuilder, Node

NODES = 12
"""Enough for a coarse level above the single blocks."""


@cache
def warm_up(search: Callable[[Problem], object], objective: Objective) -> None:
    """Run ``search`` on a small chain, the first time that it is called in this process."""
    search(_chain(objective))


def _chain(objective: Objective) -> Problem:
    builder = GraphBuilder("warm-up")
    for n in range(NODES):
        builder.add_node(Node(n, "Op", OpKind.OTHER))
        if n:
            builder.add_edge(n - 1, n, 1.0)
    tile = Chip("tile", 1.0, float(NODES), 1.0)
    cpu = Chip("cpu", 1.0, 1.0, 1.0, is_cpu=True)
    ones = np.ones(NODES)
    return Problem(
        graph=builder.build(),
        hardware=Hardware("warm-up", (tile, tile, cpu), Links(Topology.FULL, 1.0)),
        objective=objective,
        rules=rule_set("default"),
        seconds=np.stack([ones, 9.0 * ones]),
        cost_model="profiled",
        output_bytes=ones,
        weight_bytes=ones,
        streamed_bytes=np.zeros(NODES),
        edge_bytes=np.ones(NODES - 1),
        transfer_seconds=0.1 * ones,
    )
