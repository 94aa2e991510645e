"""Splits of ONNX tools: ``pipeline_stage`` in the file, and onnxruntime's layer assignment."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import onnx
from jaxtyping import Int64

from go_rl.core import OpGraph
from go_rl.graphs.readers.onnx.load import load_whole
from go_rl.objectives.makespan.choices import NOWHERE
from go_rl.plans.splits.device_words import device_of
from go_rl.plans.splits.named_nodes import assigned, node_names
from go_rl.plans.splits.split import Split, SplitContext, split_of

RULES = re.compile(r"\s*[\w:]+\s*\([^()]*\)\s*(?:;\s*[\w:]+\s*\([^()]*\)\s*)*;?\s*")
_RULE = re.compile(r"([\w:]+)\s*\(([^()]*)\)")
_PLACE = re.compile(r" at graph\.node\[(\d+)\]")
_INSIDE = re.compile(_PLACE.pattern + r"\.")
"""Source of a node in a subgraph of an operator."""


def places(graph: OpGraph) -> Int64[np.ndarray, "N"]:
    """Return [N] number of the operator in the ONNX file that each node comes from; `NOWHERE`: none
    of its main graph."""
    found = (_PLACE.search(source) for source in graph.source)
    return np.array([int(match[1]) if match else NOWHERE for match in found], np.int64)


def read_onnx_stages(setting: SplitContext, path: Any) -> Split:
    """Read ``pipeline_stage`` of the operators of an ONNX file; stage ``i`` is device ``i``.

    Raises:
        ReadError: the file cannot be read.
        SplitError: see `check_stages`; the file has no stages, other operators than the model, or
            more stages than there are devices.
    """
    model = load_whole(path)
    stage = check_stages(setting, model)
    graph = setting.graph
    place = places(graph)
    if not (place != NOWHERE).any():
        raise setting.error(f"{graph.name!r} does not come from an ONNX file")
    check_same_model(setting, model, place)
    known = np.full(graph.num_nodes, NOWHERE)
    for node in np.flatnonzero(place != NOWHERE).tolist():
        known[node] = stage.get(int(place[node]), NOWHERE)
    return split_of(setting, "onnx", known)


def check_stages(setting: SplitContext, model: onnx.ModelProto) -> dict[int, int]:
    """Return the stage of each operator that has one, by its number, having checked what onnx's own
    checker lets pass.

    Raises:
        SplitError: an operator names a configuration that the model does not have, has two stages,
            or one that its configuration, or the hardware, has no device for; or none has any.
    """
    sizes = {each.name: each.num_devices for each in model.configuration}
    devices, found = setting.hardware.num_devices, dict[int, int]()
    for number, node in enumerate(model.graph.node):
        for each in node.device_configurations:
            name = node.name or f"graph.node[{number}]"
            if each.configuration_id not in sizes:
                raise setting.error(
                    f"operator {name!r} names configuration {each.configuration_id!r}; the model "
                    f"has {sorted(sizes) or 'none'}"
                )
            if not each.HasField("pipeline_stage"):
                continue
            stage = each.pipeline_stage
            limit = min(sizes[each.configuration_id] or devices, devices)
            if not 0 <= stage < limit:
                raise setting.error(
                    f"operator {name!r} is in pipeline stage {stage}; stages are 0..{limit - 1}"
                )
            if found.setdefault(number, stage) != stage:
                raise setting.error(
                    f"operator {name!r} is in pipeline stages {found[number]} and {stage}"
                )
    if not found:
        raise setting.error("no operator has a pipeline_stage")
    return found


def check_same_model(
    setting: SplitContext, model: onnx.ModelProto, place: Int64[np.ndarray, "N"]
) -> None:
    """Raise a `SplitError` for a file whose operators are not those the graph was read from."""
    graph, nodes = setting.graph, model.graph.node
    for node in np.flatnonzero(place != NOWHERE).tolist():
        if _INSIDE.search(graph.source[node]):
            continue  # of a subgraph, whose operator is another
        number = int(place[node])
        theirs = nodes[number].op_type if number < len(nodes) else "nothing"
        mine = graph.source[node].partition("(")[0].rpartition(".")[2]
        if theirs != mine:
            raise setting.error(
                f"is of another model: its operator {number} is {theirs}, that of {graph.name!r} "
                f"is {mine} ({graph.names[node]!r})"
            )


def read_layer_assignment(setting: SplitContext, text: Any) -> Split:
    """Read ``session.name_based_layer_assignment`` of onnxruntime, such as ``gpu:0(layers.0,
    layers.1); gpu:1(layers.2)``: parts of node names, of which the longest that matches counts.

    Raises:
        SplitError: another form, a part that no name has, an unknown device.
    """
    if not RULES.fullmatch(str(text)):
        raise setting.error("must be device(part of a name, ...); device(...)")
    names = node_names(setting.graph).names
    device, nodes = dict[str, int](), dict[str, list[int]]()
    for word, parts in _RULE.findall(str(text)):
        index = device_of(word, setting.hardware, f"{setting.where}: device")
        for part in (part.strip() for part in parts.split(",")):
            if not part:
                continue
            if part.startswith("="):
                raise setting.error(f"{part!r}: names match by their parts; = is for annotations")
            nodes[part] = [n for n, name in enumerate(names) if part in name]
            if not nodes[part]:
                raise setting.error(f"{part!r} is in no node name of {setting.graph.name!r}")
            device.setdefault(part, index)
    known, entry = assigned(setting, device, nodes)
    own = np.array([part in node_names(setting.graph).by_name for part in device], bool)
    unit = np.where((entry != NOWHERE) & ~own[entry], entry, NOWHERE)
    return split_of(setting, "onnxruntime", known, unit, tuple(device))
