"""`measured_times`: what a run says of the seconds of the graph's nodes."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from go_rl.core import Hardware, Plan
from go_rl.core.hardware.processor import processor_name
from go_rl.costs.models.stage_times import StageTimes
from go_rl.plans.pipeline.pipeline import PipelineRun
from go_rl.plans.stages.folder import PLAN
from go_rl.plans.stages.manifest import Manifest


def measured_times(folder: Path, manifest: Manifest, run: PipelineRun) -> StageTimes:
    """Return the seconds of each device that ran, with the nodes that the plan gives it.

    Raises:
        PlanError: the folder has no plan, or a malformed one.
    """
    plan = Plan.load(folder / PLAN)
    hardware = Hardware.from_json(plan.hardware)
    devices = sorted({stage.device for stage in run.stages})
    nodes = {device: set(np.flatnonzero(plan.device == device).tolist()) for device in devices}
    for node, copies in plan.replicas.items():
        for device in copies:
            nodes[device].add(node)
    seconds = (
        sum(stage.typical_seconds for stage in run.stages if stage.device == device)
        for device in devices
    )
    return StageTimes(
        plan.graph_hash, hardware.devices[devices[0]].kind, processor_name(), manifest.runtime,
        tuple(tuple(sorted(nodes[device])) for device in devices), tuple(seconds),
    )  # fmt: skip
