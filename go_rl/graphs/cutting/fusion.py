"""Fusion by priority: which producers join their consumers' kernels, decided node by node.

Producers are taken by decreasing priority (ties: the later node first, as XLA goes from the results
backwards). A producer's kernel is merged with those of its consumers, nearest first, wherever that
is legal: fusible kinds, at most one matrix product or convolution, size limits, one device, and no
path between the two through an outside kernel. A producer that others need as well stays in one
kernel, which then also writes it out: nothing is computed twice.

Kernels are kept in a topological order of the quotient graph, repaired at each merge within the
stretch between the two (Pearce and Kelly 2007), so that a cycle is found by a search of that
stretch alone. A search that meets more than `REACH` kernels gives up, and the two stay apart.
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
    - ``at``, ``who`` [N]: place of a root in a topological order of the kernels, and the reverse;
    - ``size``, ``heavy``, ``tensors``, ``lowest`` [N]: of a root's kernel the nodes, the products,
      the tensors at its boundary and the lowest node;
    - ``seen``, ``met``, ``moved`` [N]: scratch of one search for a path, number ``search``.
    """
    # Fields are read once: each reading counts a reference, atomically, in the innermost loops.
    succ_ptr, succ, kind, fusible = a.succ_ptr, a.succ, a.kind, a.fusible
    n = len(priority)
    group = np.arange(n)
    at, who = np.arange(n), np.arange(n)
    head, tail, after = np.arange(n), np.arange(n), np.full(n, NOBODY, np.int64)
    size, heavy = np.ones(n, np.int64), a.heavy.astype(np.int64)
    tensors, lowest = a.tensors.copy(), np.arange(n)
    seen, met, moved = np.full(n, NOBODY, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    edges, kinds, kernels = (succ_ptr, succ), (kind, fusible), (group, head, after)
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
            if not _kinds_agree(edges, kinds, kernels, one, two):
                continue
            # No cycle: refuse a merge with a path between the kernels through a third one.
            first, last = one, two
            if at[first] > at[last]:
                first, last = last, first
            search += 1
            count = _descendants(edges, kernels, at, first, last, (seen, met, search))
            if count < 0:
                continue
            _merge(at, who, first, last, seen, search, moved)
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
def _kinds_agree(edges, kinds, kernels, one, two):
    """Whether every edge between two kernels joins kinds that may share one."""
    succ_ptr, succ = edges
    kind, fusible = kinds
    group, head, after = kernels
    for g, other in ((one, two), (two, one)):
        m = head[g]
        while m != NOBODY:
            for e in range(succ_ptr[m], succ_ptr[m + 1]):
                v = succ[e]
                if group[v] == other and not fusible[kind[m], kind[v]]:
                    return False
            m = after[m]
    return True


@njit(cache=True, nogil=True)
@no_type_check
def _descendants(edges, kernels, at, first, last, marks):
    """Mark the kernels between ``first`` and ``last`` that depend on ``first``.

    Returns their number, or -1 when ``last`` depends on one of them or too many were met.
    """
    succ_ptr, succ = edges
    group, head, after = kernels
    seen, met, search = marks
    count, done = 1, 0
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
                    if g != first:
                        return -1
                    continue
                if seen[v] != search and at[v] < at[last]:
                    if count >= REACH:
                        return -1
                    seen[v] = search
                    met[count] = v
                    count += 1
            m = after[m]
    return count


@njit(cache=True, nogil=True)
@no_type_check
def _merge(at, who, first, last, seen, search, moved):
    """Give the merged kernel a place after all between that do not depend on ``first``."""
    low, high = at[first], at[last]
    who[low] = who[high] = NOBODY
    place, count = low, 0
    for p in range(low, high + 1):
        g = who[p]
        if g == NOBODY:
            continue
        who[p] = NOBODY
        if seen[g] == search:
            moved[count] = g
            count += 1
        else:
            who[place], at[g] = g, place
            place += 1
    who[place], at[first] = first, place
    place += 1
    for i in range(count):
        who[place], at[moved[i]] = moved[i], place
        place += 1
