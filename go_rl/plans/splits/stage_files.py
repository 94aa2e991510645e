"""Stages that ``go-rl export PLAN MODEL --to FOLDER`` wrote, read as a split."""

from __future__ import annotations

from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from go_rl.core import Plan
from go_rl.plans.splits.split import Split, SplitContext, split_of
from go_rl.plans.stages.folder import PLAN
from go_rl.plans.stages.manifest import FILE as FILE
from go_rl.plans.stages.manifest import FORMAT as FORMAT
from go_rl.plans.stages.manifest import read_manifest


def read_stages(setting: SplitContext, path: Any) -> Split:
    """Read the devices of operators from the plan that lies beside the stages.

    Raises:
        PlanError: the manifest or the plan is missing or malformed.
        SplitError: the plan is another's, or of another model, or a device is unknown.
    """
    folder = Path(path).parent
    manifest, plan = read_manifest(folder), Plan.load(folder / PLAN)
    if manifest.graph_hash != plan.graph_hash:
        raise setting.error(f"was not written for the {PLAN} beside it")
    for mine, theirs in zip_longest(setting.graph.names, plan.nodes):
        if mine != theirs:
            raise setting.error(
                f"is of another model: its plan has node {theirs!r} where that of "
                f"{setting.graph.name!r} is {mine!r}"
            )
    for stage in manifest.stages:
        if not 0 <= stage.device < setting.hardware.num_devices:
            raise setting.error(
                f"{stage.file} is for device {stage.device}; devices of {setting.hardware.name!r} "
                f"are 0..{setting.hardware.num_devices - 1}"
            )
    return split_of(setting, "stages", plan.device.astype(np.int64))
