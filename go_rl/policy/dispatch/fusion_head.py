"""The third head of sequential dispatch: which producers share a kernel with their consumers.

It decides once every unit has its place in time, with the list scheduler's clock of the rollout:
a producer whose score w . x is above 0 is fused, higher scores first (`Fuser.leaders`).
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple, no_type_check

import numpy as np
from jaxtyping import Float32, Int64
from numba import njit

from go_rl.core.graph.fusion import heavy_nodes
from go_rl.graphs.cutting.fusion import NO_FUSION
from go_rl.objectives.makespan.units import MakespanUnits
from go_rl.objectives.makespan.workspace import MakespanWorkspace
from go_rl.policy.dispatch.features import FUSE_FEATURES
from go_rl.policy.dispatch.rollout import Dispatched
from go_rl.runtime.threads import on_threads

LEVELS_PER_SCORE = 1000.0
"""Priorities that a score of 1 spans."""
HIGHEST = 1000.0
"""Largest score that is told apart."""
SEEN = len(FUSE_FEATURES)


class ProducerArrays(NamedTuple):
    """Producers that may share a kernel with a consumer: ``P`` of ``N`` nodes, ``C`` consumers."""

    node: np.ndarray
    """[P] number of the node."""
    unit: np.ndarray
    """[P] unit of each producer."""
    ptr: np.ndarray
    consumer: np.ndarray
    """[P + 1], [C] units of the consumers, one entry for each consumer."""
    fixed: np.ndarray
    """[P, H] features that do not depend on the rollout, 0 where they do."""
    tail: np.ndarray
    """[U] seconds from the end of a unit to the end of all."""
    seconds: np.ndarray
    """[D, U] seconds of a unit on a device."""


class FusionHead:
    """Fusion priorities of one problem's rollouts."""

    def __init__(self, workspace: MakespanWorkspace, units: MakespanUnits) -> None:
        self._workspace, self._units = workspace, units

    @cached_property
    def _arrays(self) -> ProducerArrays:
        workspace, units = self._workspace, self._units
        graph, unit_of = workspace.problem.graph, units.unit_of
        node = np.flatnonzero(workspace.fuser.may_fuse & (unit_of >= 0))
        place = np.full(graph.num_nodes, -1)
        place[node] = np.arange(len(node))
        pairs = np.unique(np.stack([graph.senders, graph.receivers], axis=1), axis=0)
        pairs = pairs[(place[pairs[:, 0]] >= 0) & (unit_of[pairs[:, 1]] >= 0)]
        producer, consumer = place[pairs[:, 0]], pairs[:, 1]
        ptr = np.searchsorted(producer, np.arange(len(node) + 1))
        fixed = np.zeros((len(node), SEEN), np.float32)
        own = self._features(node, producer, consumer)
        for name, column in own.items():
            fixed[:, FUSE_FEATURES.index(name)] = column
        able = np.where(np.isfinite(units.seconds), units.seconds, units.units.work)
        return ProducerArrays(
            node, unit_of[node].astype(np.int64), ptr.astype(np.int64),
            unit_of[consumer].astype(np.int64), fixed,
            units.upward_rank - units.units.work, np.ascontiguousarray(able),
        )  # fmt: skip

    def _features(
        self, node: Int64[np.ndarray, "P"], producer: np.ndarray, consumer: np.ndarray
    ) -> dict[str, np.ndarray]:
        """Features that hold for every rollout."""
        problem, units = self._workspace.problem, self._units
        graph, count = problem.graph, len(node)
        seconds = problem.seconds.min(axis=0)
        seconds = np.where(np.isfinite(seconds), seconds, 0.0)
        mean = max(float(units.units.work.mean()), 1e-300)
        heavy = heavy_nodes(graph)
        consumers = np.maximum(np.bincount(producer, minlength=count), 1)
        inside = units.unit_of[consumer] == units.unit_of[node[producer]]
        bandwidth = problem.hardware.link_table.mean_bandwidth
        return {
            "any": np.ones(count),
            "seconds": np.log1p(seconds[node] / mean),
            "result": np.log1p(problem.output_bytes[node] / bandwidth / mean),
            "consumers": np.log(consumers),
            "heavy": heavy[node],
            "consumer heavy": np.bincount(producer, heavy[consumer], count) > 0,
            "consumers in the unit": np.bincount(producer, inside, count) / consumers,
            "backward": graph.is_backward[node],
            "number": node / max(graph.num_nodes, 1),
        }

    def priorities(
        self, weights: Float32[np.ndarray, "B H"], found: Dispatched
    ) -> Int64[np.ndarray, "B N"]:
        """Return [B, N] fusion priorities, `NO_FUSION` for what stays alone."""
        arrays = self._arrays
        priority = np.full((len(weights), self._workspace.num_nodes), NO_FUSION, np.int64)

        def share(rows: range) -> None:
            for i in rows:
                _priorities(arrays, weights[i], found.device[i], found.end[i], priority[i])

        if len(arrays.node):
            on_threads(share, len(weights))
        return priority


@njit(cache=True, nogil=True)
@no_type_check
def _priorities(a, w, device, end, priority):
    """Write the priorities of one rollout, from units' devices and ends [U]."""
    devices, total, last = a.seconds.shape[0], 0.0, 0.0
    load = np.zeros(devices)
    for u in range(len(end)):
        load[device[u]] += a.seconds[device[u], u]
        total += a.seconds[device[u], u]
        last = max(last, end[u])
    unit, total = max(total / len(end), 1e-300), max(total, 1e-300)
    for p in range(len(a.node)):
        u = a.unit[p]
        here, waiting, first, past = 0.0, np.inf, a.ptr[p], a.ptr[p + 1]
        for c in range(first, past):
            v = a.consumer[c]
            if device[v] == device[u]:
                here += 1.0
            if v != u:
                begins = end[v] - a.seconds[device[v], v]
                waiting = min(waiting, max(begins - end[u], 0.0))
        score = 0.0
        for f in range(len(w)):
            score += w[f] * a.fixed[p, f]
        # In the order of `FUSE_FEATURES`.
        score += w[4] * here / max(past - first, 1)
        if waiting < np.inf:
            score += w[9] * np.log1p(waiting / unit)
        score += w[10] * (devices * load[device[u]] / total - 1.0)
        score += w[11] * np.log1p(max(last - end[u] - a.tail[u], 0.0) / unit)
        if score > 0.0:
            priority[a.node[p]] = 1 + np.int64(min(score, HIGHEST) * LEVELS_PER_SCORE)
