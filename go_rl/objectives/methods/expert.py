"""A human expert's split, where one is given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from go_rl.core import Budget, NodeId, Plan, Problem, Progress, SearchError
from go_rl.core.decisions import Decisions
from go_rl.core.errors import nearest
from go_rl.core.files.strict_json import read_json, shown
from go_rl.objectives.common.incumbent import Incumbent, finish_plan
from go_rl.objectives.kits import kit_of
from go_rl.objectives.ring.workspace import RingWorkspace


@dataclass(frozen=True)
class Expert:
    """`Optimizer`: prices the given split; on a ring, the solver repairs it first."""

    split: Mapping[NodeId, int]
    """Device of each node by name."""
    name: str = "expert"

    def optimize(self, problem: Problem, budget: Budget, seed: int) -> Plan:
        """Return the expert's plan; a `SearchError` names a node without device."""
        progress = Progress(budget)
        device = np.zeros(problem.graph.num_nodes, np.int16)
        for i, node in enumerate(problem.graph.names):
            if node not in self.split:
                raise SearchError(f"expert split: node {node!r} has no device")
            chosen = self.split[node]
            if not 0 <= chosen < problem.hardware.num_devices:
                raise SearchError(
                    f"expert split: node {node!r} is on device {chosen}; "
                    f"devices are 0..{problem.hardware.num_devices - 1}"
                )
            device[i] = chosen
        workspace = kit_of(problem).workspace(problem)
        incumbent = Incumbent(workspace, progress)
        if isinstance(workspace, RingWorkspace):
            incumbent.offer(*workspace.repair(device, seed))
        else:
            decisions = Decisions(device[None])
            incumbent.offer(decisions, workspace.detail(decisions))
        return finish_plan(workspace, incumbent, self.name, seed, progress)


def read_split(path: str | Path, problem: Problem) -> dict[NodeId, int]:
    """Read a split: dnn-partitioning's expert JSON (``fpgas`` and ``cpus`` with their ``nodes``),
    or a JSON object of device by node name.

    Raises:
        SearchError: unreadable, or a node that the graph does not have.
    """
    try:
        document = read_json(path)
    except (OSError, ValueError) as error:
        raise SearchError(f"{path}: not a readable JSON split ({error})") from error
    if not isinstance(document, dict):
        raise SearchError(f"{path}: a split is a JSON object of device by node name")
    pairs = _pairs(document, problem.hardware.num_accelerators, path)
    by_text = {str(name): name for name in problem.graph.names}
    split: dict[NodeId, int] = {}
    for name, device in pairs:
        if str(name) not in by_text:
            near = nearest(str(name), by_text)
            raise SearchError(f"{path}: node {shown(name)} is not in the graph{near}")
        if type(device) is not int or not 0 <= device < problem.hardware.num_devices:
            raise SearchError(
                f"{path}: the device of node {shown(name)} must be an index from 0 to "
                f"{problem.hardware.num_devices - 1}, not {shown(device)}"
            )
        split[by_text[str(name)]] = device
    return split


def _pairs(document: dict[str, Any], accelerators: int, path: str | Path) -> list[tuple[Any, Any]]:
    """Node and device of each entry; CPUs come behind the accelerators."""
    if "fpgas" not in document:
        return list(document.items())
    try:
        fpgas = [(n, i) for i, d in enumerate(document["fpgas"]) for n in d["nodes"]]
        cpus = [(n, i) for i, d in enumerate(document.get("cpus", [])) for n in d["nodes"]]
    except (TypeError, KeyError) as error:
        raise SearchError(
            f"{path}: fpgas and cpus must be lists of objects that list their nodes"
        ) from error
    return fpgas + [(node, accelerators + i) for node, i in cpus]
