"""`best_move`: the one part of a split whose move to another device gains most."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Int16, Int64

from go_rl.core import FREE, OpGraph, Plan
from go_rl.core.evaluation import finite
from go_rl.graphs.cutting.layers import layer_names
from go_rl.objectives.common.workspace import Workspace
from go_rl.objectives.makespan.choices import NOWHERE
from go_rl.plans.splits.broken_rules import broken_rules
from go_rl.plans.splits.split import Split, listed_nodes

MOST_MOVES, LEAST_MOVES = 600, 50
"""Moves that are priced at most, and on the largest graphs; those from and to the busiest device
come first."""
MOST_NODES = 5_000_000
"""Nodes of all moves that are priced, beyond which there are fewer moves."""
CHECKED = 40
"""Fastest moves that are held against the rules until one keeps them."""
BATCH = 64
"""Moves that are priced at a time."""
LEAST_GAIN = 1e-6
"""Relative gain below which a move is none."""


@dataclass(frozen=True)
class Move:
    """A part of a split that another device would serve better."""

    part: str
    """The part in words: a layer, a module, or operators by name."""
    nodes: tuple[int, ...]
    """Nodes of the part."""
    source: int
    """Device on which the part is."""
    target: int
    """Device to which it moves."""
    seconds: float
    """Seconds an iteration after the move."""
    gain: float
    """Throughput after the move over that before; inf where the split could not run."""

    def to_json(self) -> dict[str, object]:
        """Return the object of the command's JSON."""
        return {"part": self.part, "nodes": len(self.nodes), "from": self.source,
                "to": self.target, "seconds": self.seconds, "gain": finite(self.gain)}  # fmt: skip


def best_move(workspace: Workspace, split: Split, plan: Plan) -> Move | None:
    """Return the legal move of one part that gains most; None: no move does.

    Parts at a boundary are tried: an end of an edge between two devices, to the other end's device;
    and parts of the busiest and of the last device, to idle ones.
    A part is what the notation can move, such as a layer; where nodes are named one by one, a node
    with its colocation class, and the nodes of one scope on one device.

    Args:
        workspace: of the problem.
        split: what moves.
        plan: the split as a plan; a failure counts as infinitely slow.
    """
    device = split.device
    moves = _candidates(workspace, split, _busiest(plan))
    if not moves:
        return None
    rows = np.repeat(device[None], len(moves), axis=0)
    for row, (nodes, target) in zip(rows, moves, strict=True):
        row[nodes] = target
    seconds = _priced(workspace, plan, rows)
    for i in np.argsort(seconds, kind="stable")[:CHECKED].tolist():
        if not seconds[i] < plan.value * (1 - LEAST_GAIN):
            return None
        if not broken_rules(workspace, rows[i]):
            nodes, target = moves[i]
            return _move(
                split, workspace.problem.graph, nodes, target, float(seconds[i]), plan.value
            )
    return None


def _busiest(plan: Plan) -> int:
    busy = plan.evaluation.device_seconds
    return int(busy.argmax()) if busy.size and busy.max() > 0 else NOWHERE


def _candidates(
    workspace: Workspace, split: Split, busiest: int
) -> list[tuple[Int64[np.ndarray, "M"], int]]:
    """Nodes and target of each move, without repetition."""
    graph, device = workspace.problem.graph, split.device
    cut = (device[graph.senders] != device[graph.receivers]) & ~graph.is_fed[graph.senders]
    ends = np.stack([graph.senders[cut], graph.receivers[cut]])
    idle = _idle(workspace, device)
    full = np.flatnonzero(np.isin(device, (busiest, int(device.max()))))
    parts = _parts(workspace, split)
    wanted: dict[tuple[int, int, int], None] = {}
    for which, label in enumerate(parts):
        for mover, other in (ends, ends[::-1]):
            pairs = zip(label[mover].tolist(), device[other].tolist(), strict=True)
            wanted |= {(which, part, target): None for part, target in pairs}
        leaving = np.unique(label[full]).tolist()
        wanted |= {(which, part, target): None for part in leaving for target in idle}
    found = [(np.flatnonzero(parts[which] == part), target)
             for which, part, target in wanted if part != NOWHERE]  # fmt: skip
    moving = [(nodes, target) for nodes, target in found if (device[nodes] != target).any()]
    moving.sort(key=lambda each: busiest not in (each[1], int(device[each[0][0]])))
    most = max(LEAST_MOVES, min(MOST_MOVES, MOST_NODES // graph.num_nodes))
    return moving[:most]


def _idle(workspace: Workspace, device: Int16[np.ndarray, "N"]) -> list[int]:
    """The device after the last that is used, and the first idle one of each kind."""
    kinds = workspace.problem.device_kind
    idle = np.setdiff1d(np.arange(len(kinds)), device)
    after = idle[idle == int(device.max()) + 1].tolist()
    _, first = np.unique(kinds[idle], return_index=True)
    return list(dict.fromkeys([*after, *idle[first].tolist()]))


def _parts(workspace: Workspace, split: Split) -> list[Int64[np.ndarray, "N"]]:
    """[N] label of each node's part, for each way to cut the graph into parts."""
    graph, count = workspace.problem.graph, workspace.problem.graph.num_nodes
    alone = split.unit == NOWHERE
    parts = [split.unit] if not alone.all() else []
    if not alone.any() or not (alone & split.named).any():
        return parts
    mates = np.where(graph.colocation != FREE, graph.colocation + count, np.arange(count))
    scopes = [f"{scope}\n{device}" if scope else "" for scope, device in
              zip(layer_names(graph), split.device.tolist(), strict=True)]  # fmt: skip
    _, inside = np.unique(scopes, return_inverse=True)
    inside = np.where(np.array(scopes) == "", NOWHERE, inside)
    return [*parts, *(np.where(alone, label, NOWHERE) for label in (mates, inside))]


def _priced(workspace: Workspace, plan: Plan, rows: Int16[np.ndarray, "C N"]) -> np.ndarray:
    """[C] seconds of devices [C, N], with the order and fusion of the plan."""
    found = []
    for first in range(0, len(rows), BATCH):
        part = rows[first : first + BATCH]
        found.append(workspace.evaluate(workspace.on(part, plan)).seconds)
    return np.concatenate(found)


def _move(
    split: Split, graph: OpGraph, nodes: np.ndarray, target: int, seconds: float, before: float
) -> Move:  # fmt: skip
    source = int(split.device[nodes[split.device[nodes] != target][0]])
    unit = int(split.unit[nodes[0]])
    whole = unit != NOWHERE and len(nodes) == int((split.unit == unit).sum())
    part = split.unit_names[unit] if whole else listed_nodes(graph, nodes)
    return Move(part, tuple(nodes.tolist()), source, target, seconds, before / seconds)
