"""Legal cuts of a linear order, drawn node by node: a sampler that cannot get stuck.

A chip takes a contiguous piece of a topological order. With the triangle rule, a tensor that
crosses one cut must end before the next: then chip edges join neighbours only, and no triangle can
close. A table of feasible completions, filled backwards, tells at each node whether it may stay on
the current chip or open the next one; its two-chip domain is the mask of the draw.
"""

from __future__ import annotations

from typing import no_type_check

import numpy as np
from numba import njit

from go_rl.simulate.bitset import bit
from go_rl.solvers.network import Network
from go_rl.solvers.tree_search import draw


@njit(cache=True)
@no_type_check
def guided_order(net: Network, wish) -> np.ndarray:
    """Return a topological order that takes the ready block with the smallest [M] wish first."""
    blocks = len(wish)
    order = np.empty(blocks, np.int64)
    waiting = np.empty(blocks, np.int64)
    heap = [(np.float64(0.0), np.int64(0)) for _ in range(0)]
    for v in range(blocks):
        waiting[v] = net.pred_ptr[v + 1] - net.pred_ptr[v]
        if waiting[v] == 0:
            _push(heap, (wish[v], np.int64(v)))
    for i in range(blocks):
        _, v = _pop(heap)
        order[i] = v
        for j in range(net.succ_ptr[v], net.succ_ptr[v + 1]):
            w = net.succ[j]
            waiting[w] -= 1
            if waiting[w] == 0:
                _push(heap, (wish[w], np.int64(w)))
    return order


@njit(cache=True)
@no_type_check
def _push(heap, item) -> None:
    heap.append(item)
    at = len(heap) - 1
    while at > 0:
        parent = (at - 1) >> 1
        if heap[parent] <= item:
            break
        heap[at] = heap[parent]
        at = parent
    heap[at] = item


@njit(cache=True)
@no_type_check
def _pop(heap):
    top = heap[0]
    item = heap.pop()
    size = len(heap)
    if size == 0:
        return top
    at = 0
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and heap[child + 1] < heap[child]:
            child += 1
        if item <= heap[child]:
            break
        heap[at] = heap[child]
        at = child
    heap[at] = item
    return top


@njit(cache=True)
@no_type_check
def expected_chips(net: Network, log_probs) -> np.ndarray:
    """Return [M] the mean chip of each block under its distribution."""
    blocks, chips = log_probs.shape
    mean = np.empty(blocks, np.float64)
    for v in range(blocks):
        top = log_probs[v].max()
        total, moment = 0.0, 0.0
        for c in range(chips):
            p = np.exp(log_probs[v, c] - top) if top > -np.inf else 1.0
            total += p
            moment += p * c
        mean[v] = moment / total
    return mean


@njit(cache=True)
@no_type_check
def earliest_next_cut(net: Network, order) -> np.ndarray:
    """Return [M + 1]: after a cut before position i, the first position where the next may be."""
    blocks = len(order)
    place = np.empty(blocks, np.int64)
    for i in range(blocks):
        place[order[i]] = i
    first = np.empty(blocks + 1, np.int64)
    reach = 0
    for i in range(blocks + 1):
        first[i] = max(i + 1, reach + 1 if net.triangle and reach >= i else i + 1)
        if i < blocks:
            v = order[i]
            for j in range(net.succ_ptr[v], net.succ_ptr[v + 1]):
                reach = max(reach, place[net.succ[j]])
    first[0] = 1
    return first


@njit(cache=True)
@no_type_check
def furthest_cut(net: Network, order) -> np.ndarray:
    """Return [M]: the largest q such that the weights of positions i..q-1 fit the smallest chip."""
    blocks = len(order)
    if not net.memory:
        return np.full(blocks, blocks, np.int64)
    limit = net.capacity.min()
    held = np.zeros(len(net.group_bytes), np.int64)
    out = np.empty(blocks, np.int64)
    total, q = 0, 0
    for i in range(blocks):
        while q < blocks:
            v = order[q]
            extra = net.weight[v]
            for j in range(net.group_ptr[v], net.group_ptr[v + 1]):
                if held[net.group[j]] == 0:
                    extra += net.group_bytes[net.group[j]]
            if total + extra > limit:
                break
            total += extra
            for j in range(net.group_ptr[v], net.group_ptr[v + 1]):
                held[net.group[j]] += 1
            q += 1
        out[i] = q
        if q == i:
            q = i + 1
            continue
        v = order[i]
        total -= net.weight[v]
        for j in range(net.group_ptr[v], net.group_ptr[v + 1]):
            held[net.group[j]] -= 1
            if held[net.group[j]] == 0:
                total -= net.group_bytes[net.group[j]]
    return out


@njit(cache=True)
@no_type_check
def completions(net: Network, order, domain, first, furthest):
    """Count feasible cuts: ``table[c, i]`` is how many positions j < i may open chip c.

    Chip c may open at position i when some legal completion exists.
    """
    blocks, chips = len(order), net.chips
    table = np.zeros((chips + 1, blocks + 2), np.int32)
    for c in range(chips - 1, -1, -1):
        run = blocks
        for i in range(blocks - 1, -1, -1):
            if domain[order[i]] & bit(c) == 0:
                run = i
            last = min(furthest[i], run)
            ends = last >= blocks and (not net.all_chips or c == chips - 1)
            table[c, i] = 1 if ends or _any(table[c + 1], first[i], last) else 0
        total = 0
        for i in range(blocks + 2):
            here = table[c, i]
            table[c, i] = total
            total += here
    return table


@njit(cache=True)
@no_type_check
def _any(row, low: int, high: int) -> bool:
    """Whether a position in low..high is marked, given counts of marks before each position."""
    return high >= low and row[high + 1] > row[low]


@njit(cache=True)
@no_type_check
def sample_cuts(net: Network, order, domain, log_probs, random, chip, mask) -> bool:
    """Draw a legal partition into [M] ``chip`` with [M] domains ``mask``; False: none exists in
    this order."""
    blocks = len(order)
    first, furthest = earliest_next_cut(net, order), furthest_cut(net, order)
    table = completions(net, order, domain, first, furthest)
    if not _any(table[0], 0, 0):
        return False
    start, c = np.int64(0), np.int64(0)
    last = _piece_end(net, order, domain, furthest, start, c)
    for i in range(blocks):
        v = order[i]
        options = 0 * net.start[v]
        if i > start and c + 1 < net.chips and i >= first[start] and _any(table[c + 1], i, i):
            options |= bit(c + 1)
        ends = last >= blocks and (not net.all_chips or c == net.chips - 1)
        if i == start or (
            i < last and (ends or _any(table[c + 1], max(first[start], i + 1), last))
        ):
            options |= bit(c)
        mask[v] = options
        chip[v] = draw(log_probs[v], options, random)
        if chip[v] > c:
            start, c = i, c + 1
            last = _piece_end(net, order, domain, furthest, start, c)
    return True


@njit(cache=True)
@no_type_check
def _piece_end(net: Network, order, domain, furthest, start: int, c: int) -> int:
    end = start
    while end < furthest[start] and domain[order[end]] & bit(c):
        end += 1
    return end
