"""``decoder-pipeline`` of onnxruntime-genai: files, inputs and outputs of each stage.

The files are those that ``go-rl export PLAN MODEL --to stages/`` writes.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from go_rl.graphs.readers.onnx.load import load_whole
from go_rl.graphs.readers.onnx.order import captured_names
from go_rl.objectives.makespan.choices import NOWHERE
from go_rl.plans.sinks.placed import Placed
from go_rl.plans.splits.onnx_stages import check_same_model, places
from go_rl.plans.splits.split import SplitContext


def render_genai(plan: Placed, model: str | Path, path: str | Path) -> bytes:
    """Return the ``model.decoder`` part of a genai_config.json as JSON.

    Args:
        plan: what is written.
        model: ONNX file that the plan's graph was read from.
        path: where the document goes.

    Raises:
        ReadError: the file cannot be read.
        SplitError: the file is another model's.
    """
    setting = SplitContext(plan.graph, plan.hardware, str(model))
    file, place = load_whole(model), places(plan.graph)
    check_same_model(setting, file, place)
    stage = _stage_of_operators(plan, place, len(file.graph.node))
    used = sorted(set(stage))
    stages = [_stage(file.graph, stage, i, device) for i, device in enumerate(used)]
    document = {"model": {"type": "decoder-pipeline", "decoder": {"pipeline": stages}}}
    return (json.dumps(document, indent=1) + "\n").encode()


def _stage_of_operators(plan: Placed, place: np.ndarray, count: int) -> list[int]:
    """Stage of each operator; one that the graph has folded is in that of the next."""
    stage = [NOWHERE] * count
    for node in np.flatnonzero(place != NOWHERE).tolist():
        stage[int(place[node])] = int(plan.device[node])
    following = max(stage)
    for number in range(count - 1, -1, -1):
        following = stage[number] = following if stage[number] == NOWHERE else stage[number]
    return stage


def _stage(graph: onnx.GraphProto, stage: list[int], number: int, device: int) -> dict[str, Any]:
    held = {tensor.name for tensor in graph.initializer}
    inside = [node for node, own in zip(graph.node, stage, strict=True) if own == device]
    outside = [node for node, own in zip(graph.node, stage, strict=True) if own != device]
    made = [name for node in inside for name in node.output if name]
    read = [n for node in inside for n in (*node.input, *captured_names(node)) if n]
    wanted = {n for node in outside for n in (*node.input, *captured_names(node))}
    wanted |= {value.name for value in graph.output}
    known = set(made) | held
    inputs = dict.fromkeys(name for name in read if name not in known)
    outputs = [name for name in made if name in wanted]
    return {
        f"stage-{number}": {
            "filename": f"stage-{number:02d}-device-{device}.onnx",
            "inputs": list(inputs),
            "outputs": outputs,
        }
    }
