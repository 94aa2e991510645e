"""`save_model_explorer`: a plan for Google's Model Explorer, as a graph and as data of its nodes.

Formats: ``graph_builder.py`` and ``node_data_builder.py`` of ai-edge-model-explorer 0.1.34. The
graph holds operators by scope in the colours of their devices. Node data are layers of colour that
the tool switches on and off, over that graph or over the user's own ONNX file, of which
model-explorer-onnx 0.4.2 makes a graph of that file's name with nodes of that file's names.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from go_rl.core import OpGraph, Plan, PlanError, Problem
from go_rl.core.files.whole_file import write_text, writing
from go_rl.core.unit_text import bytes_text, seconds_text
from go_rl.graphs.readers.onnx.load import load_whole
from go_rl.objectives.makespan.choices import NOWHERE
from go_rl.plans.splits.onnx_stages import check_same_model, places
from go_rl.plans.splits.split import SplitContext
from go_rl.report.figures import LINE_COLOURS
from go_rl.report.page.scopes import scope_tree

GRADIENT = ({"stop": 0, "bgColor": "#fff7ce"}, {"stop": 1, "bgColor": "#d6224a"})
"""Ends of the scale of numbers."""
LAYERS = ("seconds", "memory", "device")
"""Layers of node data; FILE.seconds.json and so on, beside the graph."""
DIGITS = 4
"""Significant digits of a number that the tool shows whole."""
Target = tuple[str, Mapping[int, str]]
"""Name of a graph in the tool, and its names of nodes."""


def data_paths(path: str | Path) -> tuple[Path, ...]:
    """Return the files of node data beside a graph's."""
    return tuple(Path(path).with_suffix(f".{layer}.json") for layer in LAYERS)


def save_model_explorer(
    problem: Problem, plan: Plan, path: str | Path, model: str | Path | None = None
) -> tuple[Path, ...]:
    """Write the graph to ``path`` and the node data beside it; returns all paths.

    Args:
        problem: of the plan.
        plan: what is shown.
        path: the graph's file.
        model: the plan's ONNX file; the node data are for its graph as well.

    Raises:
        PlanError: they cannot be written.
        ReadError: the model cannot be read.
        SplitError: the file is of another model.
    """
    graph = problem.graph
    seconds = problem.seconds[problem.device_kind[plan.device], np.arange(len(plan.device))]
    targets: list[Target] = [(graph.name, dict(enumerate(map(str, graph.names))))]
    if model is not None:
        targets.append(_onnx_target(graph, problem, model))
    documents: dict[Path, Any] = {Path(path): graph_collection(problem, plan, seconds)}
    for file, layer in zip(data_paths(path), _layers(problem, plan, seconds), strict=True):
        documents[file] = node_data(targets, layer)
    for file, document in documents.items():
        with writing(file, PlanError):
            write_text(file, json.dumps(document, allow_nan=False, ensure_ascii=False) + "\n")
    return tuple(documents)


def _onnx_target(graph: OpGraph, problem: Problem, model: str | Path) -> Target:
    """The graph that model-explorer-onnx makes of a file, and its names of the nodes; where several
    nodes stand for an operator, of the first."""
    file, place = load_whole(model), places(graph)
    check_same_model(SplitContext(graph, problem.hardware, str(model)), file, place)
    names = onnx_ids(file.graph)
    first: dict[int, int] = {}
    for node in np.flatnonzero(place != NOWHERE).tolist():
        first.setdefault(int(place[node]), node)
    return file.graph.name, {node: names[number] for number, node in first.items()}


def onnx_ids(graph: onnx.GraphProto) -> list[str]:
    """Return the names that onnx-ir's ``NameFixPass`` gives the operators of a main graph, which
    are those of the file where these are unique."""
    taken, again, found = set[str](), Counter[str](), list[str]()
    for node in graph.node:
        name = _free(node.name or "node", taken, again)
        found.append(name)
        _count_inner(node, again)
    return found


def _free(wanted: str, taken: set[str], again: Counter[str]) -> str:
    name = wanted
    while name in taken:
        again[wanted] += 1
        name = f"{wanted}_{again[wanted]}"
    taken.add(name)
    return name


def _count_inner(node: onnx.NodeProto, again: Counter[str]) -> None:
    """Count the names of subgraphs: each has names of its own, and one count is for all."""
    for attribute in node.attribute:
        for graph in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
            taken = set[str]()
            for inner in graph.node:
                _free(inner.name or "node", taken, again)
                _count_inner(inner, again)


Layer = tuple[str, Sequence[float | str | None], bool]
"""Title, value by node, and whether each value is a device."""


def _layers(problem: Problem, plan: Plan, seconds: np.ndarray) -> Iterator[Layer]:
    """Yield the layers of `LAYERS`."""
    held = (problem.weight_bytes + problem.output_bytes).tolist()
    word = problem.objective.traits.device
    yield "time, µs", [_short(1e6 * t) for t in seconds.tolist()], False
    yield "weights and results, MB", [_short(size / 1e6) for size in held], False
    yield word, [f"{word} {device}" for device in plan.device.tolist()], True


def _short(number: float) -> float | None:
    return float(f"{number:.{DIGITS}g}") if np.isfinite(number) else None


def node_data(targets: Sequence[Target], layer: Layer) -> dict[str, Any]:
    """Return a layer of node data for graphs of the tool, by their names."""
    title, values, is_device = layer
    results = {
        node: {"value": value} | ({"bgColor": _colour(str(value))} if is_device else {})
        for node, value in enumerate(values)
        if value is not None
    }
    scale = {} if is_device else {"gradient": list(GRADIENT)}
    found: dict[str, Any] = {}
    for name, ids in targets:
        data = found.setdefault(name, {"name": title, "results": {}, **scale})
        data["results"].update((ids[n], each) for n, each in results.items() if n in ids)
    return found


def _colour(device: str) -> str:
    """Colour of a device, two thirds white: the tool writes black on it."""
    full = LINE_COLOURS[int(device.rpartition(" ")[2]) % len(LINE_COLOURS)]
    parts = (int(full[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{(part + 2 * 255) // 3:02x}" for part in parts)


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
            "style": {"backgroundColor": _colour(f"{word} {device}")},
        })  # fmt: skip
    return {"label": graph.name, "graphs": [{"id": graph.name, "nodes": nodes}]}
