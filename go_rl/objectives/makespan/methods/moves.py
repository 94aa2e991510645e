"""Moves of local search over makespan plans: which nodes change together, and to what.

A move takes a set of nodes - one node, a connected group, a stretch of the topological order, a
layer or a run of layers, each with its backward nodes - and changes one decision for all of them:
their device (often that of a neighbour), their scheduling priority, their fusion priority.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import no_type_check

import numpy as np
from jaxtyping import Bool, Int16, Int64
from numba import njit

from go_rl.core.graph.condensation import undirected_rows
from go_rl.graphs.cutting.fusion import NO_FUSION
from go_rl.graphs.cutting.layers import layer_names, layers
from go_rl.objectives.makespan.choices import LEVELS, NOWHERE
from go_rl.objectives.makespan.infer_devices import filled_in
from go_rl.objectives.makespan.workspace import MakespanWorkspace

NODE, GROUP, STRETCH, LAYER, RUN = range(5)
"""Sets of nodes that change together."""
WIDEST = 2**40
"""Spread of priorities at which their ranks take their place."""


@dataclass(frozen=True, eq=False)
class MoveState:
    """Proposals for the three decisions; `MakespanWorkspace.decisions` makes them a plan."""

    device: Int16[np.ndarray, "N"]
    priority: Int64[np.ndarray, "N"]
    fusion: Int64[np.ndarray, "N"]


class Moves:
    """Draws moves for one problem."""

    def __init__(self, workspace: MakespanWorkspace) -> None:
        options = self._options = workspace.choices
        graph, fed = workspace.problem.graph, options.fed
        self._timed = np.flatnonzero(~fed)
        matters = ~fed | (workspace.problem.weight_bytes > 0)
        self._movable = np.flatnonzero(matters & (options.allowed.sum(axis=0) > 1))
        self._may_fuse = np.flatnonzero(workspace.fuser.may_fuse & ~fed)
        real = ~fed[graph.senders] & ~fed[graph.receivers]
        self._senders = graph.senders[real].astype(np.int64)
        self._receivers = graph.receivers[real].astype(np.int64)
        self._start, self._beside, _ = undirected_rows(
            self._senders, self._receivers, graph.num_nodes
        )
        self._layer = _layers(workspace, fed)
        _grown(self._start, self._beside, np.zeros(len(fed), np.int16), 0, 1)  # compiled here
        able = {
            "placement": self._movable,
            "schedule": self._timed if len(self._timed) > 1 else self._timed[:0],
            "fusion": self._may_fuse,
        }
        asked = workspace.problem.decisions
        self._able = {t: nodes for t, nodes in able.items() if t in asked and len(nodes)}
        self._urn = [t for t in self._able for _ in range(2 if t == "placement" else 1)]

    @property
    def any(self) -> bool:
        """Whether something can be changed."""
        return bool(self._able)

    def draw(self, state: MoveState, rng: np.random.Generator) -> MoveState:
        """Return a neighbour of a state."""
        decision = self._urn[int(rng.integers(len(self._urn)))]
        if decision == "placement":
            return replace(state, device=self._moved(state.device, rng))
        start = int(rng.choice(self._able[decision]))
        nodes = self._set(int(rng.integers(5)), start, np.zeros_like(state.device), rng)
        if decision == "schedule":
            priority = _narrowed(state.priority)
            spread = int(np.ptp(priority)) + 1
            shift = int(np.ceil(spread * rng.random() ** 3)) * (1 if rng.random() < 0.5 else -1)
            return replace(state, priority=_changed(priority, nodes, shift, True))
        level = NO_FUSION if rng.random() < 0.5 else int(rng.integers(1, LEVELS))
        return replace(state, fusion=_changed(state.fusion, nodes, level, False))

    def _moved(self, device: Int16[np.ndarray, "N"], rng: np.random.Generator) -> np.ndarray:
        """[N] devices after a move: half of them shift the border between two devices."""
        cut = device[self._senders] != device[self._receivers]
        start, target = int(rng.choice(self._movable)), NOWHERE
        if rng.random() < 0.5 and cut.any():
            edge = int(rng.choice(np.flatnonzero(cut)))
            ends = [int(self._senders[edge]), int(self._receivers[edge])]
            if rng.random() < 0.5:
                ends.reverse()
            start, target = ends[0], int(device[ends[1]])
        elif rng.random() < 0.5:
            near = device[self._beside[self._start[start] : self._start[start + 1]]]
            near = near[near != device[start]]
            target = int(rng.choice(near)) if near.size else NOWHERE
        if target == NOWHERE:
            there = np.flatnonzero(self._options.allowed[:, start])
            there = there[there != device[start]]
            if not there.size:
                return device
            target = int(rng.choice(there))
        nodes = self._set(int(rng.integers(5)), start, device, rng)
        nodes = nodes[self._options.allowed[target, nodes]]
        moved = device.copy()
        moved[self._options.leader[nodes]] = target
        return moved[self._options.leader]

    def _set(
        self, sort: int, start: int, device: Int16[np.ndarray, "N"], rng: np.random.Generator
    ) -> Int64[np.ndarray, "S"]:
        """Nodes around ``start`` that change together; a group or stretch stays on its device."""
        size = int(np.exp(rng.random() * np.log(max(len(self._timed) / 2, 1.0)))) + 1
        if sort == GROUP:
            return _grown(self._start, self._beside, device, start, size)
        if sort == STRETCH:
            first = max(0, int(np.searchsorted(self._timed, start)) - int(rng.integers(size)))
            nodes = self._timed[first : first + size]
            return nodes[device[nodes] == device[start]]
        if sort in (LAYER, RUN):
            low = high = self._layer[start]
            if sort == RUN:
                width = int(np.exp(rng.random() * np.log(self._layer.max() + 2.0)))
                low = low - int(rng.integers(width + 1))
                high = low + width
            inside = (self._layer[self._timed] >= low) & (self._layer[self._timed] <= high)
            return self._timed[inside]
        return np.array([start])


def _narrowed(priority: Int64[np.ndarray, "N"]) -> Int64[np.ndarray, "N"]:
    """Return priorities of the same order that leave room for further shifts, each of which may
    double their spread."""
    if int(priority.max()) - int(priority.min()) < WIDEST:
        return priority
    return np.unique(priority, return_inverse=True)[1].astype(np.int64)


def _changed(
    values: Int64[np.ndarray, "N"], nodes: Int64[np.ndarray, "S"], by: int, add: bool
) -> Int64[np.ndarray, "N"]:
    changed = values.copy()
    changed[nodes] = changed[nodes] + by if add else by
    return changed


def _layers(workspace: MakespanWorkspace, fed: Bool[np.ndarray, "N"]) -> Int64[np.ndarray, "N"]:
    """[N] layer of each node; one outside any scope takes that of its neighbours."""
    graph = workspace.problem.graph
    scoped = np.array([bool(scope) for scope in layer_names(graph)])
    if not scoped.any():
        return np.arange(graph.num_nodes)
    known = np.where(scoped, layers(graph), NOWHERE).astype(np.int64)
    return filled_in(graph, fed, known)


@njit(cache=True, nogil=True)
@no_type_check
def _grown(start, beside, device, first, size):
    """Return up to ``size`` nodes on one device around ``first``, breadth first."""
    found, seen = np.empty(size, np.int64), np.zeros(len(device), np.bool_)
    found[0], seen[first] = first, True
    count, done = 1, 0
    while done < count:
        node = found[done]
        done += 1
        for i in range(start[node], start[node + 1]):
            other = beside[i]
            if seen[other] or device[other] != device[first]:
                continue
            if count == size:
                return found
            found[count], seen[other] = other, True
            count += 1
    return found[:count]
