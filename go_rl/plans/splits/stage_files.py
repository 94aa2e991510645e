"""Stages that ``go-rl export PLAN MODEL --to FOLDER`` wrote, read as a split."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from go_rl.core import Plan
from go_rl.objectives.makespan.choices import NOWHERE
from go_rl.plans.splits.split import Split, SplitContext, split_of
from go_rl.plans.stages.folder import PLAN
from go_rl.plans.stages.manifest import FILE as FILE
from go_rl.plans.stages.manifest import FORMAT as FORMAT
from go_rl.plans.stages.manifest import read_manifest


def read_stages(setting: SplitContext, path: Any) -> Split:
    """Read the devices of operators from the plan that lies beside the stages.

    Raises:
        PlanError: the manifest or the plan is missing or malformed.
        SplitError: a device is unknown.
    """
    folder = Path(path).parent
    for stage in read_manifest(folder).stages:
        if not 0 <= stage.device < setting.hardware.num_devices:
            raise setting.error(
                f"{stage.file} is for device {stage.device}; devices of {setting.hardware.name!r} "
                f"are 0..{setting.hardware.num_devices - 1}"
            )
    plan = Plan.load(folder / PLAN)
    home = dict(zip(map(str, plan.nodes), plan.device.tolist(), strict=True))
    names = map(str, setting.graph.names)
    return split_of(setting, "stages", np.array([home.get(name, NOWHERE) for name in names]))
