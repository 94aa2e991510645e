"""`fusion_lower_bound`: seconds that no fusion saves, from how `FusedPrices` prices a kernel.

A kernel of several nodes takes one launch and the larger of two sums over its nodes, or more: what
its nodes take one after the other is no less.

- *Arithmetic*: all FLOP at the rate of the kind of the node with most of them. So a node's are no
  faster than at the best rate of the nodes that it may share a kernel with and that have as many.
- *Traffic*: the bytes of its nodes less what it saves. A node saves no more than the tensors on its
  edges that may lie inside, those that another node of its kernel may have read before, and its
  results of which every reader may be inside and which are no results of the model.

Nodes that no row of edges between fusible kinds joins never share a kernel: a *component* is what
such rows join. It holds at least as many kernels as matrix products and convolutions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float64, Int64
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from go_rl.core import OpGraph, Problem
from go_rl.core.graph.fusion import MAX_FUSED, fusible_kinds, heavy_nodes
from go_rl.costs.models.analytical import DEFAULT, Analytical, peak_rates, shipped_parameters
from go_rl.costs.models.fused import FusedPrices
from go_rl.costs.models.gpus.learned_gpus import LearnedGpus
from go_rl.costs.models.profiled import Profiled


@dataclass(frozen=True, eq=False)
class FusionLowerBound:
    """Lower bound on seconds of kernels, on any device; inputs and constants take none."""

    inner: Bool[np.ndarray, "E"]
    """[E] edges that may lie inside a kernel; the ends of all others are in different ones."""
    component: Int64[np.ndarray, "N"]
    """[N] nodes with different numbers never share a kernel."""
    start: Float64[np.ndarray, "N"]
    """[N] seconds of a kernel with this node beside those of its nodes."""
    seconds: Float64[np.ndarray, "N"]
    """[N] seconds of each node, which add up over any nodes of a kernel."""
    total: float
    """Seconds of all kernels of an iteration together."""


class _Parts(NamedTuple):
    """Seconds of a kernel: ``launch`` + max(sum of ``compute``, sum of ``traffic``), at least."""

    launch: float
    compute: Float64[np.ndarray, "N"]
    traffic: Float64[np.ndarray, "N"]
    """[N] may be negative: a node that reads part of a tensor saves all of it."""


def fusion_lower_bound(problem: Problem) -> FusionLowerBound | None:
    """Return a lower bound on the kernels of any plan; None where a node can run nowhere. Without
    the decision fusion every node is a kernel of its own, and takes its own seconds. Of a kernel's
    price nothing is known unless `FusedPrices` takes it from `Analytical`, or from `LearnedGpus`,
    whose kernels take no less than their products.
    """
    graph = problem.graph
    own = np.where(graph.is_fed, 0.0, problem.seconds.min(axis=0))
    if not np.isfinite(own).all():
        return None
    inner = _inner(problem)
    count, component = _components(problem, inner)
    size = np.bincount(component, minlength=count)
    alone = size[component] == 1
    parts = _parts(problem, inner, component)
    seconds, load = _added(graph, parts, component, count)
    heavy = np.bincount(component, heavy_nodes(graph), count)
    kernels = np.maximum(np.maximum(heavy, 1.0), np.ceil(size / MAX_FUSED))
    together = np.where(size > 1, load + kernels * parts.launch, 0.0)
    return FusionLowerBound(
        inner=inner,
        component=component,
        start=np.where(alone, 0.0, parts.launch),
        seconds=np.where(alone, own, seconds),
        total=float(own[alone].sum() + together.sum()),
    )


def _inner(problem: Problem) -> Bool[np.ndarray, "E"]:
    graph, prices = problem.graph, problem.kernels
    unpriced = isinstance(prices, FusedPrices) and isinstance(prices.model, Profiled)
    if "fusion" not in problem.decisions or unpriced:
        return np.zeros(graph.num_edges, np.bool_)
    return fusible_kinds()[graph.kind[graph.senders], graph.kind[graph.receivers]]


def _components(problem: Problem, inner: np.ndarray) -> tuple[int, Int64[np.ndarray, "N"]]:
    graph, count = problem.graph, problem.graph.num_nodes
    ends = graph.senders[inner], graph.receivers[inner]
    joined = coo_matrix((np.ones(len(ends[0]), np.int8), ends), shape=(count, count))
    found, component = connected_components(joined, directed=False)
    return int(found), component.astype(np.int64)


def _added(
    graph: OpGraph, parts: _Parts, component: Int64[np.ndarray, "N"], count: int
) -> tuple[Float64[np.ndarray, "N"], Float64[np.ndarray, "C"]]:
    """[N] seconds of nodes that add up over any nodes of a kernel, and [C] the sum over all nodes
    of each component; launches are left out.

    The larger of two sums is no less than either; nor than a sum that takes the larger part of the
    one heavy node of a kernel, and of every other node the smaller.
    """
    compute, traffic = parts.compute, parts.traffic
    least, most = np.minimum(compute, traffic), np.maximum(compute, traffic)
    ways = np.stack([compute, traffic, np.where(heavy_nodes(graph), most, least)])
    sums = np.stack([np.bincount(component, way, count) for way in ways])
    # A node that saves more than it reads speaks against the others of its kernel.
    saves = np.bincount(component, traffic < 0, count) > 0
    usable = np.where(saves & (np.arange(3) > 0)[:, None], -1.0, sums)
    seconds = np.take_along_axis(ways, usable.argmax(axis=0)[component][None], axis=0)[0]
    return seconds, np.maximum(sums.max(axis=0), 0.0)


def _parts(problem: Problem, inner: np.ndarray, component: np.ndarray) -> _Parts:
    prices, nothing = problem.kernels, np.zeros(problem.graph.num_nodes)
    if not isinstance(prices, FusedPrices) or not np.array_equal(prices.base, problem.seconds):
        return _Parts(0.0, nothing, nothing)
    if isinstance(prices.model, LearnedGpus):
        least = [prices.model.least_seconds(problem.graph, each) for each in prices.devices]
        return _Parts(0.0, np.min(least, axis=0), nothing)
    if not isinstance(prices.model, Analytical):
        return _Parts(0.0, nothing, nothing)
    known = prices.model.parameters
    shares = shipped_parameters() if known is None else known
    size = _least_bytes(prices, inner, component)
    able, rows = np.isfinite(prices.base), []
    for row, device in enumerate(prices.devices):
        share = shares.get(device.kind, DEFAULT)
        pace = peak_rates(prices.nodes, device) * share.of_kind()[prices.nodes.kind]
        compute = prices.nodes.flops / _best_pace(prices, pace, component)
        traffic = size / (device.memory_bandwidth * share.memory)
        rows.append([np.where(able[row], part, np.inf) for part in (compute, traffic)])
    compute, traffic = np.min(rows, axis=0)
    return _Parts(
        launch=min(device.launch_seconds for device in prices.devices),
        compute=np.where(np.isfinite(compute), compute, 0.0),
        traffic=np.where(np.isfinite(traffic), traffic, 0.0),
    )


def _best_pace(
    prices: FusedPrices, pace: Float64[np.ndarray, "N"], component: Int64[np.ndarray, "N"]
) -> Float64[np.ndarray, "N"]:
    """[N] FLOP/s of the fastest among nodes of the component with at least as many FLOP; ``pace``
    [N]: those of each node by itself."""
    nodes = prices.nodes
    distinct, place = np.unique(pace, return_inverse=True)
    order = np.lexsort((-place, -nodes.flops, component))
    step = len(distinct)
    best = np.maximum.accumulate(component[order] * step + place[order]) % step
    found = np.empty(len(order))
    found[order] = distinct[best]
    return found


def _least_bytes(
    prices: FusedPrices, inner: Bool[np.ndarray, "E"], component: Int64[np.ndarray, "N"]
) -> Float64[np.ndarray, "N"]:
    """[N] bytes that each node adds to those of its kernel, at least."""
    graph, count = prices.nodes.graph, prices.nodes.graph.num_nodes
    readings = prices.readings
    again = readings.again(component[graph.receivers])
    unread = np.bincount(graph.receivers, prices.edge_bytes * (inner | again), count)
    leaves = np.bincount(readings.tensor, ~inner, readings.num_tensors)[readings.tensor] > 0
    hidden = readings.first & ~leaves & ~graph.is_output[graph.senders]
    unwritten = np.bincount(graph.senders, prices.edge_bytes * hidden, count)
    return prices.nodes.bytes_accessed - unread - unwritten
