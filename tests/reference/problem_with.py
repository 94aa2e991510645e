"""A problem of given seconds, for the generators of small problems."""

from typing import Any

import numpy as np

from go_rl.core import Hardware, Objective, OpGraph, Problem, rule_set


def problem_with(
    graph: OpGraph, hardware: Hardware, objective: Objective, seconds: np.ndarray, **fields: Any
) -> Problem:
    """Weights and edges are those of the graph; nothing is written, streamed or transferred to a
    host, unless ``fields`` say so."""
    nothing = np.zeros(graph.num_nodes)
    usual: dict[str, Any] = {
        "rules": rule_set("default"), "cost_model": "profiled", "output_bytes": nothing,
        "weight_bytes": graph.weight_bytes, "tied_bytes": graph.tied_bytes,
        "streamed_bytes": nothing, "edge_bytes": graph.edge_bytes, "transfer_seconds": nothing,
    }  # fmt: skip
    return Problem(graph, hardware, objective=objective, seconds=seconds, **{**usual, **fields})
