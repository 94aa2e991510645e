"""`save_overlay`: devices and seconds of a plan as node data of Google's Model Explorer.

Format: https://github.com/google-ai-edge/model-explorer, wiki "Develop: node data". Values by node
id, one set for each thing that is shown; ids are the names in the model.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from go_rl.core import Plan, PlanError, Problem
from go_rl.core.evaluation import finite
from go_rl.core.files.whole_file import write_text
from go_rl.report.figures import LINE_COLOURS

PALE, HOT = "#fff7ce", "#d6224a"
"""Ends of the colour scale of seconds."""


def save_overlay(problem: Problem, plan: Plan, path: str | Path) -> None:
    """Write the file.

    Raises:
        PlanError: it cannot be written.
    """
    try:
        write_text(Path(path), json.dumps(overlay(problem, plan), allow_nan=False) + "\n")
    except OSError as error:
        raise PlanError(f"{path}: cannot be written ({error.strerror})") from error


def overlay(problem: Problem, plan: Plan) -> dict[str, Any]:
    """Return the document: for the graph of the model's name, devices with a colour each, and
    seconds on a scale."""
    names, word = [str(name) for name in plan.nodes], problem.objective.traits.device
    seconds = problem.seconds[problem.device_kind[plan.device], np.arange(len(names))]
    devices = {
        name: {"value": f"{word} {d}", "bgColor": LINE_COLOURS[d % len(LINE_COLOURS)]}
        for name, d in zip(names, plan.device.tolist(), strict=True)
    }
    times = {
        name: {"value": finite(t)}
        for name, t in zip(names, seconds.tolist(), strict=True)
        if finite(t) is not None
    }
    gradient = [{"stop": 0, "bgColor": PALE}, {"stop": 1, "bgColor": HOT}]
    return {
        f"{word} of the plan": {"results": devices},
        "seconds": {"results": times, "gradient": gradient},
    }
