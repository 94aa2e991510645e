"""Legal cuts of a linear order, drawn node by node: a sampler that cannot get stuck.

A chip takes a contiguous piece of a topological order. With the triangle rule, a tensor that
crosses one cut must end before the next: then chip edges join neighbours only, and no triangle can
close. A table of feasible completions, filled backwards, tells at each node whether it may stay on
the current chip or open the next one; its two-chip domain is the mask of the draw.
"""

from __future__ import annotations

from typing import no_type_check

import numpy as np
from jaxtyping import Float64, Int16, Int64, UInt64

from go_rl.runtime.kernel_struct import kernel
from go_rl.simulate.bitset import bit
from go_rl.solvers.graphs.list_order import list_order
from go_rl.solvers.network import Network
from go_rl.solvers.tree_search import draw


def guided_order(net: Network, wish: Float64[np.ndarray, "M"]) -> Int64[np.ndarray, "M"]:
    """Return a topological order that takes the ready block with the smallest [M] wish first."""
    return list_order(net.pred_ptr, net.succ_ptr, net.succ, wish)


def expected_chips(log_probs: Float64[np.ndarray, "M k"]) -> Float64[np.ndarray, "M"]:
    """Return [M] the mean chip of each block under its distribution."""
    mean = np.empty(len(log_probs))
    _means(log_probs, mean)
    return mean


@kernel
@no_type_check
def _means(log_probs, mean) -> None:
    blocks, chips = log_probs.shape
    for v in range(blocks):
        top = -np.inf
        for c in range(chips):
            top = max(top, log_probs[v, c])
        total, moment = 0.0, 0.0
        for c in range(chips):
            p = np.exp(log_probs[v, c] - top) if top > -np.inf else 1.0
            total += p
            moment += p * c
        mean[v] = moment / total


@kernel
@no_type_check
def _earliest_next_cut(net: Network, order, place, first) -> None:
    """Write [M + 1]: after a cut before position i, the first position where the next may be."""
    blocks = len(order)
    for i in range(blocks):
        place[order[i]] = i
    reach = 0
    for i in range(blocks + 1):
        first[i] = max(i + 1, reach + 1 if net.triangle and reach >= i else i + 1)
        if i < blocks:
            v = order[i]
            for j in range(net.succ_ptr[v], net.succ_ptr[v + 1]):
                reach = max(reach, place[net.succ[j]])
    first[0] = 1


@kernel
@no_type_check
def _furthest_cut(net: Network, order, limit: int, held, out) -> None:
    """Write [M]: the largest q such that the weights of positions i..q-1 are at most ``limit``.

    ``held`` [G] holds zeros.
    """
    blocks = len(order)
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


@kernel
@no_type_check
def _completions(net: Network, order, domain, first, furthest, table) -> None:
    """Count feasible cuts: ``table[c, i]`` is how many positions j < i may open chip c.

    Chip c may open at position i when some legal completion exists; [k + 1, M + 2] ``table`` holds
    zeros.
    """
    blocks, chips = len(order), net.chips
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


@kernel
@no_type_check
def _any(row, low: int, high: int) -> bool:
    """Whether a position in low..high is marked, given counts of marks before each position."""
    return high >= low and row[high + 1] > row[low]


def sample_cuts(
    net: Network,
    order: Int64[np.ndarray, "M"],
    domain: Int64[np.ndarray, "M"],
    log_probs: Float64[np.ndarray, "M k"],
    random: UInt64[np.ndarray, "1"],
    chip: Int16[np.ndarray, "M"],
    mask: Int64[np.ndarray, "M"],
) -> bool:
    """Draw a legal partition into ``chip`` with domains ``mask``; False: none exists in this
    order."""
    blocks = len(order)
    first, furthest = np.empty(blocks + 1, np.int64), np.full(blocks, blocks, np.int64)
    _earliest_next_cut(net, order, np.empty(blocks, np.int64), first)
    if net.memory:
        held = np.zeros(len(net.group_bytes), np.int64)
        _furthest_cut(net, order, int(net.capacity.min()), held, furthest)
    table = np.zeros((net.chips + 1, blocks + 2), np.int32)
    _completions(net, order, domain, first, furthest, table)
    return _draw_cuts(net, order, domain, log_probs, random, (first, furthest, table), chip, mask)


@kernel
@no_type_check
def _draw_cuts(net: Network, order, domain, log_probs, random, cuts, chip, mask) -> bool:
    first, furthest, table = cuts
    blocks = len(order)
    if not _any(table[0], np.int64(0), np.int64(0)):
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


@kernel
@no_type_check
def _piece_end(net: Network, order, domain, furthest, start: int, c: int) -> int:
    end = start
    while end < furthest[start] and domain[order[end]] & bit(c):
        end += 1
    return end
