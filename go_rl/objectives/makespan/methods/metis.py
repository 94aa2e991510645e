"""METIS for the makespan objective: D parts of equal seconds with few bytes between them.

As device placement papers use it (Mirhoseini et al. 2017; Zhou et al. 2020): it knows neither the
direction of an edge nor time nor memory, and a plan that does not fit fails.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from jaxtyping import Float64, Int16, Int64

from go_rl.core.decisions import Decisions
from go_rl.objectives.common.metis import TRIES, in_order, partition
from go_rl.objectives.makespan.choices import softly_placed
from go_rl.objectives.makespan.infer_devices import beside_readers
from go_rl.objectives.makespan.methods.best_of import BestOf
from go_rl.objectives.makespan.workspace import MakespanWorkspace

TOTAL = 100_000_000
"""All work, and all traffic, are scaled to this sum."""


def _plans(workspace: MakespanWorkspace, seed: int) -> Iterator[Decisions]:
    for attempt in range(TRIES):
        yield workspace.decisions(metis_devices(workspace, seed + attempt)[None])


MakespanMetis = partial(BestOf, "metis", _plans)
"""`Optimizer`: METIS parts on devices, in topological order, nothing fused; a sample is one
seed."""


def metis_devices(workspace: MakespanWorkspace, seed: int) -> Int16[np.ndarray, "N"]:
    """Return [N] devices: METIS's parts in the order of their mean place in the graph."""
    devices, options = workspace.num_devices, workspace.choices
    real = np.unique(options.leader[~options.fed])
    if len(real) <= devices or devices == 1:
        part = np.arange(len(real)) % devices
    else:
        part = _partition(workspace, real, seed)
    device = np.zeros(workspace.num_nodes, np.int64)
    device[real] = in_order(part, real, devices)
    placed = softly_placed(options, device[options.leader][None])[0]
    return beside_readers(workspace.problem.graph, placed)


def _partition(
    workspace: MakespanWorkspace, real: Int64[np.ndarray, "V"], seed: int
) -> Int64[np.ndarray, "V"]:
    """[V] part of each colocation class or free node."""
    problem, graph, options = workspace.problem, workspace.problem.graph, workspace.choices
    vertex = np.zeros(workspace.num_nodes, np.int64)
    vertex[real] = np.arange(len(real))
    vertex = vertex[options.leader]
    seconds = np.where(workspace.able, problem.seconds[problem.device_kind], 0.0)
    mean = seconds.sum(axis=0) / np.maximum(workspace.able.sum(axis=0), 1)
    work = np.bincount(vertex, np.where(options.fed, 0.0, mean), len(real))
    joined = ~options.fed[graph.senders] & (vertex[graph.senders] != vertex[graph.receivers])
    joined &= ~options.fed[graph.receivers]
    ends = np.stack([vertex[graph.senders[joined]], vertex[graph.receivers[joined]]])
    bytes_between = problem.edge_bytes[joined]
    return partition(workspace.num_devices, work, ends, bytes_between, _scaled, seed)


def _scaled(values: Float64[np.ndarray, "X"]) -> Float64[np.ndarray, "X"]:
    total = values.sum()
    return values * (TOTAL / total if total > 0 else 0.0)
