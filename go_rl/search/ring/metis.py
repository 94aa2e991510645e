"""METIS: balanced graph partitioning, made legal by the solver.

Karypis and Kumar, "A fast and high quality multilevel scheme for partitioning irregular graphs",
1998, through pymetis. METIS knows neither direction nor the ring's rules: its parts are numbered
by their mean place in topological order and then repaired by FIX.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pymetis
from jaxtyping import Int16

from go_rl.core import Budget, Plan, Problem, Progress
from go_rl.objectives.incumbent import Incumbent, finish_plan
from go_rl.objectives.ring.workspace import RingWorkspace, ring_workspace

WEIGHT_SCALE = 10_000
"""METIS wants integers: work and traffic are scaled so that their largest value is this."""
TRIES = 8
"""Seeds tried at most."""


@dataclass(frozen=True)
class Metis:
    """`Optimizer`: METIS parts, sorted along the ring and repaired; a sample is one seed."""

    name: str = "metis"

    def optimize(self, problem: Problem, budget: Budget, seed: int) -> Plan:
        """Return the best of a few seeds; see `go_rl.core.Optimizer`."""
        workspace, progress = ring_workspace(problem), Progress(budget)
        incumbent = Incumbent(workspace, progress)
        for attempt in range(TRIES):
            if attempt and (progress.spent or incumbent.decisions is None):
                break
            proposal = _parts(workspace, seed + attempt)
            incumbent.offer(*workspace.repair(proposal, seed + attempt))
        return finish_plan(workspace, incumbent, self.name, seed, progress)


def _parts(workspace: RingWorkspace, seed: int) -> Int16[np.ndarray, "N"]:
    units = workspace.units
    count = units.num_units
    if count <= 1 or workspace.chips == 1:
        return workspace.nodes_of(np.zeros(count, np.int32))
    neighbours, weights = _adjacency(workspace)
    starts = np.zeros(count + 1, np.int64)
    np.cumsum([len(n) for n in neighbours], out=starts[1:])
    _, part = pymetis.part_graph(
        min(workspace.chips, count),
        pymetis.CSRAdjacency(starts.tolist(), [w for n in neighbours for w in n]),
        vweights=_scaled(units.work).tolist(),
        eweights=[w for n in weights for w in n],
        options=pymetis.Options(seed=seed),
    )
    label = np.array(part)
    size = np.maximum(np.bincount(label, minlength=workspace.chips), 1)
    mean = np.bincount(label, np.arange(count), minlength=workspace.chips) / size
    used = np.bincount(label, minlength=workspace.chips) > 0
    rank = np.empty(workspace.chips, np.int64)
    rank[np.lexsort((mean, ~used))] = np.arange(workspace.chips)
    return workspace.nodes_of(rank[label][units.unit_of])


def _adjacency(workspace: RingWorkspace) -> tuple[list[list[int]], list[list[int]]]:
    """Undirected neighbours of each unit, and the traffic between them as integers >= 1."""
    units = workspace.units
    traffic: dict[tuple[int, int], float] = {}
    rows = np.repeat(np.arange(units.num_units), np.diff(units.succ_ptr))
    for u, v in zip(rows.tolist(), units.succ.tolist(), strict=True):
        traffic[u, v] = 0.0
    for t, u in enumerate(units.tensor_source.tolist()):
        for v in units.user[units.use_ptr[t] : units.use_ptr[t + 1]].tolist():
            traffic[u, v] = traffic.get((u, v), 0.0) + float(units.tensor_seconds[t])
    scaled = _scaled(np.array(list(traffic.values())))
    neighbours: list[list[int]] = [[] for _ in range(units.num_units)]
    weights: list[list[int]] = [[] for _ in range(units.num_units)]
    for (u, v), w in zip(traffic, scaled.tolist(), strict=True):
        for a, b in ((u, v), (v, u)):
            neighbours[a].append(b)
            weights[a].append(w)
    return neighbours, weights


def _scaled(values: np.ndarray) -> np.ndarray:
    top = values.max(initial=0.0)
    return (
        np.maximum(1, np.round(values / top * WEIGHT_SCALE)).astype(np.int64)
        if top > 0
        else (np.ones(len(values), np.int64))
    )
