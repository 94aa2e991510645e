"""Fusion by priority: which producers join their consumers' kernels, decided node by node.

Producers are taken by decreasing priority (ties: the later node first, as XLA goes from the results
backwards). A producer's kernel is merged with those of its consumers, nearest first, wherever that
is legal: fusible kinds, at most one matrix product or convolution, size limits, one device, and no
path between the two through an outside kernel. A producer that others need as well stays in one
kernel, which then also writes it out: nothing is computed twice.

Kernels are kept in a topological order of the quotient graph, so that a cycle is found by a search
between the two alone (Pearce and Kelly 2007). At a merge what depends on the earlier one moves
behind the later one; places are labels with gaps between them (Dietz and Sleator 1987), so that
nothing else moves. A search that meets more than `REACH` kernels gives up, and the two stay apart.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple, no_type_check

import numpy as np
from jaxtyping import Bool, Int, Int64
from numba import njit

from go_rl.core import OpGraph
from go_rl.core.graph.fusion import MAX_BOUNDARY, MAX_FUSED, fusible_kinds, heavy_nodes
from go_rl.runtime.threads import on_threads

NO_FUSION = 0
"""Priority of a producer that is not fused with its consumers."""
REACH = 256
"""Largest number of kernels in a search for a cycle."""
NOBODY = -1
GAP = 1 << 36
"""Distance of labels at first, and after they were given anew."""
HIGHEST = 1 << 62
"""Label beyond which all are given anew."""


class FusionArrays(NamedTuple):
    """Input of the compiled loop. ``N`` nodes, ``P`` distinct (producer, consumer) pairs."""

    kind: np.ndarray
    """[N] `OpKind`."""
    heavy: np.ndarray
    """[N] matrix products and convolutions."""
    fusible: np.ndarray
    """[kinds, kinds] whether a producer and its consumer may share a kernel."""
    succ_ptr: np.ndarray
    succ: np.ndarray
    """[N + 1], [P] distinct consumers, ascending."""
    tensors: np.ndarray
    """[N] tensors that a node reads and writes."""


class Fuser:
    """Makes legal kernels of a graph from fusion priorities."""

    def __init__(self, graph: OpGraph, within: Int[np.ndarray, "N"] | None = None) -> None:
        """``within`` [N]: only nodes with equal values may share a kernel, such as layers."""
        self.graph = graph
        count = graph.num_nodes
        self._arrays = _fusion_arrays(graph)
        self._class = np.zeros(count, np.int64) if within is None else within.astype(np.int64)

    @cached_property
    def may_fuse(self) -> Bool[np.ndarray, "N"]:
        """[N] producers that have a consumer with which they could share a kernel."""
        a, graph = self._arrays, self.graph
        able = np.zeros(graph.num_nodes, np.bool_)
        pairs = a.fusible[a.kind[graph.senders], a.kind[graph.receivers]]
        able[graph.senders[pairs]] = True
        return able

    def leaders(
        self, priority: Int[np.ndarray, "B N"], device: Int[np.ndarray, "B N"]
    ) -> Int64[np.ndarray, "B N"]:
        """Return [B, N] the lowest node of each node's kernel.

        Args:
            priority: [B, N] of each producer; `NO_FUSION` or less: it joins no consumer.
            device: [B, N] nodes on different devices never share a kernel.
        """
        found = np.empty(priority.shape, np.int64)

        def share(rows: range) -> None:
            for i in rows:
                row = priority[i].astype(np.int64)
                place = self._class * (int(device[i].max(initial=0)) + 1) + device[i]
                found[i] = _fuse(self._arrays, row, _visits(row), place.astype(np.int64))

        on_threads(share, len(priority))
        return found


def _visits(priority: Int64[np.ndarray, "N"]) -> Int64[np.ndarray, "N"]:
    """Return the producers in the order in which they are considered."""
    return np.lexsort((-np.arange(len(priority)), -priority)).astype(np.int64)


def _fusion_arrays(graph: OpGraph) -> FusionArrays:
    count = graph.num_nodes
    pairs = np.unique(graph.senders.astype(np.int64) * count + graph.receivers)
    senders, receivers = pairs // max(count, 1), pairs % max(count, 1)
    read = np.unique(
        np.stack([graph.receivers, graph.senders, graph.edge_output]).astype(np.int64), axis=1
    )
    written = np.unique(np.stack([graph.senders, graph.edge_output]).astype(np.int64), axis=1)
    tensors = np.bincount(read[0], minlength=count) + np.bincount(written[0], minlength=count)
    return FusionArrays(
        kind=graph.kind.astype(np.int64),
        heavy=heavy_nodes(graph),
        fusible=fusible_kinds(),
        succ_ptr=np.searchsorted(senders, np.arange(count + 1)).astype(np.int64),
        succ=receivers,
        tensors=tensors.astype(np.int64),
    )


@njit(cache=True, nogil=True)
@no_type_check
def _fuse(a, priority, visits, place):
    """Return [N] leaders; ``place`` [N]: nodes with different values stay apart.

    State, over ``N`` nodes, of which each kernel is known by its root, one of its nodes:

    - ``group`` [N]: root of each node's kernel;
    - ``head``, ``tail``, ``after`` [N]: members of a root's kernel as a linked list;
    - ``at`` [N]: label of a root, rising in a topological order of the kernels; ``earlier``,
      ``later`` [N + 1]: its neighbours in this order, a ring that begins and ends at N;
    - ``size``, ``heavy``, ``tensors``, ``lowest`` [N]: of a root's kernel the nodes, the products,
      the tensors at its boundary and the lowest node;
    - ``seen``, ``met`` [N]: scratch of one search for a path, number ``search``.
    """
    # Fields are read once: each reading counts a reference, atomically, in the innermost loops.
    succ_ptr, succ, kind, fusible = a.succ_ptr, a.succ, a.kind, a.fusible
    n = len(priority)
    group = np.arange(n)
    at, earlier, later = np.arange(n) * GAP, np.arange(-1, n), np.arange(1, n + 2)
    earlier[0], later[n] = n, 0
    head, tail, after = np.arange(n), np.arange(n), np.full(n, NOBODY, np.int64)
    size, heavy = np.ones(n, np.int64), a.heavy.astype(np.int64)
    tensors, lowest = a.tensors.copy(), np.arange(n)
    seen, met = np.full(n, NOBODY, np.int64), np.empty(n, np.int64)
    edges, kinds, kernels = (succ_ptr, succ), (kind, fusible), (group, head, after)
    order = at, earlier, later
    search = 0
    # Edges in falling priority of their producers, until one is not to be fused.
    for i in range(n):
        u = visits[i]
        if priority[u] <= NO_FUSION:
            break
        for e in range(succ_ptr[u], succ_ptr[u + 1]):
            v = succ[e]
            one, two = group[u], group[v]
            if one == two or place[u] != place[v] or not fusible[kind[u], kind[v]]:
                continue
            # Limits of a kernel: one heavy operator, its size, its boundary tensors.
            if heavy[one] + heavy[two] > 1 or size[one] + size[two] > MAX_FUSED:
                continue
            if tensors[one] + tensors[two] - 1 > MAX_BOUNDARY:
                continue
            # All edges between them join kinds that agree, and no path goes through a third one.
            first, last = one, two
            if at[first] > at[last]:
                first, last = last, first
            search += 1
            count = _descendants(edges, kinds, kernels, at, first, last, (seen, met, search))
            if count < 0:
                continue
            _move_behind(order, first, last, met[1:count])
            _join_members(kernels, tail, first, last)
            size[first] += size[last]
            heavy[first] += heavy[last]
            tensors[first] += tensors[last] - 1
            lowest[first] = min(lowest[first], lowest[last])
    leader = np.empty(n, np.int64)
    for node in range(n):
        leader[node] = lowest[group[node]]
    return leader


@njit(cache=True, nogil=True)
@no_type_check
def _join_members(kernels, tail, first, last):
    """Append the members of root ``last`` to those of root ``first``."""
    group, head, after = kernels
    after[tail[first]] = head[last]
    tail[first] = tail[last]
    member = head[last]
    while member != NOBODY:
        group[member] = first
        member = after[member]


@njit(cache=True, nogil=True)
@no_type_check
def _descendants(edges, kinds, kernels, at, first, last, marks):
    """Mark the kernels between ``first`` and ``last`` that depend on ``first``.

    Returns their number, ``first`` included, or -1 when ``last`` depends on one of the others, an
    edge between the two joins kinds that may not share a kernel, or too many were met.
    """
    succ_ptr, succ = edges
    kind, fusible = kinds
    group, head, after = kernels
    seen, met, search = marks
    count, done, end = 1, 0, at[last]
    met[0] = first
    seen[first] = search
    while done < count:
        g = met[done]
        done += 1
        m = head[g]
        while m != NOBODY:
            for e in range(succ_ptr[m], succ_ptr[m + 1]):
                v = group[succ[e]]
                if v == last:
                    if g != first or not fusible[kind[m], kind[succ[e]]]:
                        return -1
                elif seen[v] != search and at[v] < end:
                    if count >= REACH:
                        return -1
                    seen[v] = search
                    met[count] = v
                    count += 1
            m = after[m]
    return count


@njit(cache=True, nogil=True)
@no_type_check
def _move_behind(order, first, last, moved):
    """Give the merged kernel, of root ``first``, the place of ``last``, and what depends on it,
    ``moved``, the places behind."""
    at, _, later = order
    _sort(moved, at)
    _take_out(order, first)
    for g in moved:
        _take_out(order, g)
    # From here on ``first`` stands for ``last``.
    at[first] = at[last]
    _put_behind(order, first, last)
    _take_out(order, last)
    end = later[first]
    step = GAP if end == len(at) else (at[end] - at[first]) // (len(moved) + 1)
    place = first
    for g in moved:
        at[g] = at[place] + step
        _put_behind(order, g, place)
        place = g
    if step == 0 or at[place] > HIGHEST:
        _label_anew(order)


@njit(cache=True, nogil=True)
@no_type_check
def _sort(roots, at):
    """Sort a few kernels by their labels."""
    for i in range(1, len(roots)):
        g, j = roots[i], i
        while j > 0 and at[roots[j - 1]] > at[g]:
            roots[j] = roots[j - 1]
            j -= 1
        roots[j] = g


@njit(cache=True, nogil=True)
@no_type_check
def _take_out(order, g):
    _, earlier, later = order
    earlier[later[g]], later[earlier[g]] = earlier[g], later[g]


@njit(cache=True, nogil=True)
@no_type_check
def _put_behind(order, g, place):
    _, earlier, later = order
    earlier[g], later[g] = place, later[place]
    earlier[later[g]], later[place] = g, g


@njit(cache=True, nogil=True)
@no_type_check
def _label_anew(order):
    at, _, later = order
    g, label = later[len(at)], 0
    while g != len(at):
        at[g] = label
        g, label = later[g], label + GAP
