"""METIS for the makespan objective: D parts of equal seconds with few bytes between them.

Karypis and Kumar, "A fast and high quality multilevel scheme for partitioning irregular graphs",
1998, through pymetis, as device placement papers use it (Mirhoseini et al. 2017; Zhou et al. 2020):
it knows neither the direction of an edge nor time nor memory, and a plan that does not fit fails.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pymetis
from jaxtyping import Float64, Int16, Int64

from go_rl.core import Budget, Plan, Problem, Progress
from go_rl.core.decisions import Decisions
from go_rl.objectives.incumbent import best_of
from go_rl.objectives.makespan.choices import Choices, softly_placed
from go_rl.objectives.makespan.infer_devices import beside_readers
from go_rl.objectives.makespan.workspace import MakespanWorkspace, makespan_workspace

TOTAL = 100_000_000
"""METIS wants integers: all work, and all traffic, are scaled to this sum."""
TRIES = 8
"""Seeds tried at most."""


@dataclass(frozen=True)
class MakespanMetis:
    """`Optimizer`: METIS parts on devices, in topological order, nothing fused; a sample is one
    seed."""

    name: str = "metis"

    def optimize(self, problem: Problem, budget: Budget, seed: int) -> Plan:
        """Return the best of a few seeds; see `go_rl.core.Optimizer`."""
        workspace = makespan_workspace(problem)
        return best_of(workspace, _plans(workspace, seed), self.name, seed, Progress(budget))


def _plans(workspace: MakespanWorkspace, seed: int) -> Iterator[Decisions]:
    for attempt in range(TRIES):
        device = metis_devices(workspace, workspace.choices, seed + attempt)
        yield workspace.decisions(device[None])


def metis_devices(
    workspace: MakespanWorkspace, options: Choices, seed: int
) -> Int16[np.ndarray, "N"]:
    """Return [N] devices: METIS's parts in the order of their mean place in the graph."""
    devices = workspace.num_devices
    real = np.unique(options.leader[~options.fed])
    if len(real) <= devices or devices == 1:
        part = np.arange(len(real)) % devices
    else:
        part = _partition(workspace, options, real, seed)
    size = np.bincount(part, minlength=devices)
    mean = np.bincount(part, real, devices) / np.maximum(size, 1)
    rank = np.empty(devices, np.int64)
    rank[np.lexsort((mean, size == 0))] = np.arange(devices)
    device = np.zeros(workspace.num_nodes, np.int64)
    device[real] = rank[part]
    placed = softly_placed(options, device[options.leader][None])[0]
    return beside_readers(workspace.problem.graph, placed)


def _partition(
    workspace: MakespanWorkspace, options: Choices, real: Int64[np.ndarray, "V"], seed: int
) -> Int64[np.ndarray, "V"]:
    """[V] part of each colocation class or free node."""
    problem, graph = workspace.problem, workspace.problem.graph
    vertex = np.zeros(workspace.num_nodes, np.int64)
    vertex[real] = np.arange(len(real))
    vertex = vertex[options.leader]
    seconds = np.where(workspace.able, problem.seconds[problem.device_kind], 0.0)
    mean = seconds.sum(axis=0) / np.maximum(workspace.able.sum(axis=0), 1)
    work = np.bincount(vertex, np.where(options.fed, 0.0, mean), len(real))
    joined = ~options.fed[graph.senders] & (vertex[graph.senders] != vertex[graph.receivers])
    joined &= ~options.fed[graph.receivers]
    ends = np.stack([vertex[graph.senders[joined]], vertex[graph.receivers[joined]]])
    start, neighbour, traffic = _undirected(ends, problem.edge_bytes[joined], len(real))
    _, part = pymetis.part_graph(
        workspace.num_devices,
        pymetis.CSRAdjacency(start.tolist(), neighbour.tolist()),
        vweights=_whole(work, work.sum()).tolist(),
        eweights=_whole(traffic, traffic.sum() / 2).tolist(),
        options=pymetis.Options(seed=seed),
    )
    return np.array(part, np.int64)


def _undirected(
    ends: Int64[np.ndarray, "2 E"], size: Float64[np.ndarray, "E"], count: int
) -> tuple[Int64[np.ndarray, "P"], Int64[np.ndarray, "A"], Float64[np.ndarray, "A"]]:
    """Compressed rows of neighbours, each pair of vertices both ways, and the bytes between."""
    both = np.concatenate([ends[0] * count + ends[1], ends[1] * count + ends[0]])
    pairs, which = np.unique(both, return_inverse=True)
    total = np.bincount(which, np.concatenate([size, size]), len(pairs)).astype(np.float64)
    start = np.searchsorted(pairs, np.arange(count + 1) * count)
    return start.astype(np.int64), pairs % max(count, 1), total


def _whole(values: Float64[np.ndarray, "A"], total: float) -> Int64[np.ndarray, "A"]:
    scale = TOTAL / total if total > 0 else 0.0
    return np.maximum(1, np.round(values * scale)).astype(np.int64)
