"""Passes one after the other, as compiler stacks run them: placement, then order, then fusion.

Placements: the expert's, HEFT's with and without queues on links, the default, METIS's. Orders:
HEFT's upward ranks for that placement, for HEFT's placements its own ranks, topological. Fusions:
greedy, none. Every composition is one sample; those that do most come first. The plans of
`MakespanExpert`, `Heft`, `GreedyFusion` and `DefaultPlacement` are among them.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from functools import cache, partial

import numpy as np
from jaxtyping import Int, Int64

from go_rl.core.decisions import Decisions
from go_rl.objectives.makespan.choices import softly_placed
from go_rl.objectives.makespan.infer_devices import beside_readers
from go_rl.objectives.makespan.methods.best_of import BestOf
from go_rl.objectives.makespan.methods.expert import expert_devices
from go_rl.objectives.makespan.methods.heft import heft, rank_priorities, upward_rank
from go_rl.objectives.makespan.methods.metis import metis_devices
from go_rl.objectives.makespan.workspace import MakespanWorkspace

NodeDevices = Int64[np.ndarray, "N"]


class Order(enum.Enum):
    """Rule that picks the next of the ready nodes."""

    PLACED = "upward ranks for the placement"
    UNPLACED = "upward ranks for mean devices and transfers, HEFT's own"
    TOPOLOGICAL = "lowest node first"


def compositions(workspace: MakespanWorkspace, seed: int) -> Iterator[Decisions]:
    """Yield plans one by one, each made when it is asked for; equal placements count once."""
    placements = {name: cache(place) for name, place in _placements(workspace, seed).items()}
    decisions = workspace.problem.decisions
    fusions = (True, False) if "fusion" in decisions else (False,)
    orders = tuple(Order) if "schedule" in decisions else (Order.TOPOLOGICAL,)
    for fused in fusions:
        for order in orders:
            seen: set[bytes] = set()
            for name, place in placements.items():
                if order is Order.UNPLACED and not name.startswith("heft"):
                    continue
                device = place()
                if device.tobytes() not in seen:
                    seen.add(device.tobytes())
                    yield composition(workspace, device, order, fused)


Composed = partial(BestOf, "composed", compositions)
"""`Optimizer`: the best composition; decisions that are not asked for keep their defaults."""


def composition(
    workspace: MakespanWorkspace, device: Int[np.ndarray, "N"], order: Order, fused: bool
) -> Decisions:
    """Return a plan on devices [N]; a decision that is not asked for keeps its default."""
    rows, priority = device[None], None
    if order is not Order.TOPOLOGICAL:
        rank = upward_rank(workspace, None if order is Order.UNPLACED else device)
        priority = rank_priorities(rank)[None]
    return workspace.decisions(rows, priority, np.ones(rows.shape, np.int64) if fused else None)


def _placements(workspace: MakespanWorkspace, seed: int) -> dict[str, Callable[[], NodeDevices]]:
    """Functions that return [N] devices, by name; the default alone where nothing is to be
    placed."""

    def by_heft(queues: bool) -> NodeDevices:
        return _legal(
            workspace, beside_readers(workspace.problem.graph, heft(workspace, queues).device)
        )

    def default() -> NodeDevices:
        return _legal(workspace, workspace.reference.device[0])

    if "placement" not in workspace.problem.decisions:
        return {"default": default}
    return {
        "expert": lambda: expert_placement(workspace),
        "heft": lambda: by_heft(False),
        "heft, queues": lambda: by_heft(True),
        "default": default,
        "metis": lambda: _legal(workspace, metis_devices(workspace, seed)),
    }


def expert_placement(workspace: MakespanWorkspace) -> NodeDevices:
    """Return the expert's [N] devices, moved to the next that can run a node; where nothing is to
    be placed, the default's."""
    if "placement" not in workspace.problem.decisions:
        return _legal(workspace, workspace.reference.device[0])
    placed = softly_placed(workspace.choices, expert_devices(workspace)[None])[0]
    return _legal(workspace, placed)


def _legal(workspace: MakespanWorkspace, device: Int[np.ndarray, "N"]) -> NodeDevices:
    """Pins and colocation classes hold."""
    return workspace.decisions(device[None]).device[0].astype(np.int64)
