"""Stages that ``go-rl export PLAN MODEL --to FOLDER`` wrote, read as a split."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from go_rl.graphs.readers.onnx.load import load_whole
from go_rl.objectives.makespan.choices import NOWHERE
from go_rl.plans.splits.named_nodes import node_names
from go_rl.plans.splits.split import Split, SplitContext, split_of
from go_rl.plans.stages.manifest import FILE as FILE
from go_rl.plans.stages.manifest import FORMAT as FORMAT
from go_rl.plans.stages.manifest import read_manifest


def read_stages(setting: SplitContext, path: Any) -> Split:
    """Read the devices of operators from a manifest and the ONNX files beside it. An operator that
    several stages hold, such as a constant, is at home in the first.

    Raises:
        PlanError: the manifest is malformed.
        ReadError: a file is missing, or is no ONNX model.
        SplitError: a file names no node of the graph, or a device is unknown.
    """
    folder, names = Path(path).parent, node_names(setting.graph).names
    home: dict[str, int] = {}
    for stage in read_manifest(folder).stages:
        if not 0 <= stage.device < setting.hardware.num_devices:
            raise setting.error(
                f"{stage.file} is for device {stage.device}; devices of {setting.hardware.name!r} "
                f"are 0..{setting.hardware.num_devices - 1}"
            )
        for node in load_whole(folder / stage.file).graph.node:
            home.setdefault(node.name, stage.device)
    known = np.array([home.get(_operator(name, home), NOWHERE) for name in names])
    return split_of(setting, "stages", known)


def _operator(name: str, home: dict[str, int]) -> str:
    """The operator of a file that a node is, or is a step of, as those of recurrent layers are."""
    whole = name
    while name and name not in home:
        name = name.rpartition("/")[0]
    return name or whole
