"""Inception by towers: the branches of each block side by side on the devices."""

from __future__ import annotations

import re

import numpy as np
from jaxtyping import Int64

from go_rl.objectives.makespan.workspace import MakespanWorkspace

JOINT = re.compile(r"^(mixed\d+|mixed_\d[a-z]|block\d+_\d+_mixed)$")
"""Scope of the concatenation that ends a block."""
TRUNK = -2
"""A node that several branches need."""
OUTSIDE = -1


def tower_devices(workspace: MakespanWorkspace, scopes: tuple[str, ...]) -> dict[str, int]:
    """Return the device of every scope of an Inception; nothing for other networks.

    The branches of a block, heaviest first, go to the device with the least work of the block so
    far; what several branches share stays on the first device, as do the joints.
    """
    graph, devices = workspace.problem.graph, workspace.num_devices
    forward = ~graph.is_backward & ~graph.is_fed
    joints = [n for n in np.flatnonzero(forward).tolist() if JOINT.match(scopes[n])]
    if not joints:
        return {}
    found = dict.fromkeys((s for s in scopes if s), 0)
    seconds = workspace.problem.seconds.min(axis=0)
    seen = np.zeros(graph.num_nodes, np.bool_)
    for joint in joints:
        branch = _branches(workspace, joint, forward & ~seen)
        inside = np.flatnonzero(branch >= 0)
        work = np.bincount(branch[inside], seconds[inside])
        load, device = np.zeros(devices), np.zeros(len(work), np.int64)
        for b in np.argsort(-work, kind="stable"):
            device[b] = np.argmin(load)
            load[device[b]] += work[b]
        found |= {scopes[n]: int(device[branch[n]]) for n in inside if scopes[n]}
        seen |= branch != OUTSIDE
    return found


def _branches(workspace: MakespanWorkspace, joint: int, free: np.ndarray) -> Int64[np.ndarray, "N"]:
    """[N] number of the joint's operand that a node alone leads to; `TRUNK`, `OUTSIDE`."""
    graph = workspace.problem.graph
    offsets, edges = graph.predecessors
    branch = np.full(graph.num_nodes, OUTSIDE, np.int64)
    branch[joint] = TRUNK
    operands = np.unique(graph.senders[edges[offsets[joint] : offsets[joint + 1]]])
    for number, node in enumerate(operands):
        if free[node]:
            branch[node] = number
    for node in range(joint - 1, -1, -1):
        if branch[node] == OUTSIDE:
            continue
        for before in graph.senders[edges[offsets[node] : offsets[node + 1]]]:
            if not free[before]:
                continue
            same = branch[before] in (OUTSIDE, branch[node])
            branch[before] = branch[node] if same else TRUNK
    return branch
