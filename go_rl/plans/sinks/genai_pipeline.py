"""``decoder-pipeline`` of onnxruntime-genai: files, inputs and outputs of each stage.

The files are those that ``go-rl export PLAN MODEL --to stages/`` writes.
"""

from __future__ import annotations

import json
from pathlib import Path

from go_rl.graphs.readers.onnx.load import load_frugally
from go_rl.plans.sinks.placed import Placed
from go_rl.plans.splits.onnx_stages import check_same_model, places
from go_rl.plans.splits.split import SplitContext
from go_rl.plans.stages.cut import cut_model
from go_rl.plans.stages.flow import StageFlow
from go_rl.plans.stages.folder import stage_file
from go_rl.plans.stages.write import inlined_model


def render_genai(plan: Placed, model: str | Path, path: str | Path) -> bytes:
    """Return the ``model.decoder`` part of a genai_config.json as JSON.

    Args:
        plan: what is written.
        model: ONNX file that the plan's graph was read from.
        path: where the document goes.

    Raises:
        PlanError: the plan spreads one operator over devices.
        ReadError: the file cannot be read.
        SplitError: the file is another model's.
    """
    setting = SplitContext(plan.graph, plan.hardware, str(model))
    check_same_model(setting, load_frugally(Path(model)), places(plan.graph))
    whole = inlined_model(Path(model))
    cut = cut_model(whole, plan.graph, plan, str(model))
    flow = StageFlow(whole, cut)
    stages = [
        {
            f"stage-{number}": {
                "filename": stage_file(number, device, ".onnx"),
                "inputs": flow.inputs(number),
                "outputs": flow.outputs(number),
            }
        }
        for number, device in enumerate(cut.device)
    ]
    document = {"model": {"type": "decoder-pipeline", "decoder": {"pipeline": stages}}}
    return (json.dumps(document, indent=1) + "\n").encode()
