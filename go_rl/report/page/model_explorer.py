"""`save_model_explorer`: a plan for Google's Model Explorer, as a graph and as data of its nodes.

Formats: ``graph_builder.py`` and ``node_data_builder.py`` of ai-edge-model-explorer 0.1.34. The
graph holds operators by scope in the colours of their devices; the node data hold seconds, on a
scale of colours that the tool switches on and off.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from go_rl.core import OpGraph, Plan, PlanError, Problem
from go_rl.core.evaluation import finite
from go_rl.core.files.whole_file import write_text
from go_rl.core.unit_text import bytes_text, seconds_text
from go_rl.report.figures import LINE_COLOURS
from go_rl.report.page.scopes import scope_tree

GRADIENT = ({"stop": 0, "bgColor": "#fff7ce"}, {"stop": 1, "bgColor": "#d6224a"})
"""Ends of the scale of seconds."""
NODE_DATA_SUFFIX = ".seconds.json"
"""Ends the name of the node data, beside the graph."""


def save_model_explorer(problem: Problem, plan: Plan, path: str | Path) -> tuple[Path, Path]:
    """Write the graph to ``path`` and the node data beside it; returns both paths.

    Raises:
        PlanError: they cannot be written.
    """
    graph_path = Path(path)
    data_path = graph_path.with_suffix(NODE_DATA_SUFFIX)
    seconds = problem.seconds[problem.device_kind[plan.device], np.arange(len(plan.device))]
    documents = {
        graph_path: graph_collection(problem, plan, seconds),
        data_path: node_data(problem.graph, seconds),
    }
    for file, document in documents.items():
        try:
            write_text(file, json.dumps(document, allow_nan=False) + "\n")
        except OSError as error:
            raise PlanError(f"{file}: cannot be written ({error.strerror})") from error
    return graph_path, data_path


def graph_collection(problem: Problem, plan: Plan, seconds: np.ndarray) -> dict[str, Any]:
    """Return a collection of one graph; ``seconds`` [N] of each node."""
    graph, word = problem.graph, problem.objective.traits.device
    tree = scope_tree(graph)
    incoming: list[list[dict[str, str]]] = [[] for _ in graph.names]
    for sender, receiver, output in zip(
        graph.senders.tolist(), graph.receivers.tolist(), graph.edge_output.tolist(), strict=True
    ):
        source = {"sourceNodeId": str(graph.names[sender]), "sourceNodeOutputId": str(output)}
        incoming[receiver].append(source)
    nodes = []
    for n, device in enumerate(plan.device.tolist()):
        facts = {
            word: str(device),
            "seconds": seconds_text(seconds[n]) if np.isfinite(seconds[n]) else "cannot run",
            "weights": bytes_text(float(problem.weight_bytes[n])),
            "results": bytes_text(float(problem.output_bytes[n])),
            "source": graph.source[n],
        }
        nodes.append({
            "id": str(graph.names[n]),
            "label": graph.op_type[n],
            "namespace": tree.path(n),
            "incomingEdges": incoming[n],
            "attrs": [{"key": key, "value": value} for key, value in facts.items() if value],
            "style": {"backgroundColor": LINE_COLOURS[device % len(LINE_COLOURS)]},
        })  # fmt: skip
    return {"label": graph.name, "graphs": [{"id": graph.name, "nodes": nodes}]}


def node_data(graph: OpGraph, seconds: np.ndarray) -> dict[str, Any]:
    """Return seconds [N] by node name, those that are numbers."""
    known = {str(name): finite(t) for name, t in zip(graph.names, seconds.tolist(), strict=True)}
    results = {name: {"value": value} for name, value in known.items() if value is not None}
    return {graph.name: {"name": "seconds", "results": results, "gradient": list(GRADIENT)}}
