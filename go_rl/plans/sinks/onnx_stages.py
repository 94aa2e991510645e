"""Multi-device annotations of ONNX: a copy of the model whose operators state their stage."""

from __future__ import annotations

from pathlib import Path

import onnx

from go_rl.graphs.readers.onnx.load import external_tensors, load_whole
from go_rl.plans.sinks.onnx_operators import operator_devices
from go_rl.plans.sinks.placed import Placed
from go_rl.plans.splits.onnx_stages import check_same_model, check_stages, places
from go_rl.plans.splits.split import SplitContext

CONFIGURATION = "go_rl"
"""Name of the configuration that the stages belong to."""
FIRST_IR_VERSION = 11
"""Version of the format that knows configurations."""


def annotated_model(plan: Placed, model: str | Path, path: str | Path) -> bytes:
    """Return the file of an annotated model; its operators, weights and names stay as they are.

    Args:
        plan: what is written.
        model: ONNX file that the plan's graph was read from.
        path: where the copy goes: weights in other files are referred to, and must be found there.

    Raises:
        ReadError: the file cannot be read.
        SplitError: the file is another model's, one of its operators is on several devices, or its
            weights lie in other files of another folder.
    """
    setting = SplitContext(plan.graph, plan.hardware, str(model))
    annotated = load_whole(model)
    check_same_model(setting, annotated, places(plan.graph))
    apart = Path(model).resolve().parent != Path(path).resolve().parent
    if apart and next(external_tensors(annotated), None) is not None:
        raise plan.error(
            f"writes a copy that refers to the weights of {model} in other files: write it to the "
            "same folder"
        )
    stage = operator_devices(plan)
    kept = [each for each in annotated.configuration if each.name != CONFIGURATION]
    del annotated.configuration[:]
    annotated.configuration.extend(kept)
    devices = [f"{each.kind}:{i}" for i, each in enumerate(plan.hardware.devices)]
    annotated.configuration.append(
        onnx.DeviceConfigurationProto(name=CONFIGURATION, num_devices=len(devices), device=devices)
    )
    annotated.ir_version = max(annotated.ir_version, FIRST_IR_VERSION)
    for number, node in enumerate(annotated.graph.node):
        del node.device_configurations[:]
        if number in stage:
            node.device_configurations.append(
                onnx.NodeDeviceConfigurationProto(
                    configuration_id=CONFIGURATION, pipeline_stage=stage[number]
                )
            )
    check_stages(setting, annotated)
    return annotated.SerializeToString()
