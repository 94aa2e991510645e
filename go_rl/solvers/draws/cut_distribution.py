"""Exact draws of the cuts of one linear order from independent distributions of its blocks.

A chip takes a contiguous piece of a topological order. With the triangle rule, a tensor that
crosses one cut must end before the next: then chip edges join neighbours only, and no triangle can
close. Among all cuts of an order that keep this rule, the domains and the memory of every chip,

    p(cuts) = prod_v P[v, chip of v] / Z.

Z and the mass of every completion follow from one backward sweep, chip by chip. With S[c, i] the
sum of log P of the first i positions on chip c, and B[c, i] the log-mass of all ways to place the
positions from i on when chip c opens at i,

    W[c, e] = S[c, e] + B[c + 1, e]                      (0 in place of B at the end of the order)
    B[c, i] = log sum of exp W[c, e] over first[i] <= e <= last[c, i], less S[c, i]

Both ends of that window only move forward, so each sum costs O(1) and the sweep O(chips x blocks).
A forward pass draws the cuts one after the other.
"""

from __future__ import annotations

from typing import no_type_check

import numpy as np
from jaxtyping import Float64, Int16, Int64, UInt64

from go_rl.core.bitset import bit
from go_rl.core.compiled_struct import compiled
from go_rl.solvers.network import Network
from go_rl.solvers.tree_search import next_uniform

NEVER = -1e6
"""Log-odds against a block's likeliest chip in place of -inf: drawn only where nothing else is
legal."""


class CutDistribution:
    """The legal cuts of one order, weighted by the probabilities of its blocks."""

    def __init__(
        self,
        net: Network,
        order: Int64[np.ndarray, "M"],
        domain: Int64[np.ndarray, "M"],
        log_probs: Float64[np.ndarray, "M k"],
        best: bool = False,
    ) -> None:
        """Sum over the cuts.

        Args:
            net: the problem.
            order: [M] blocks in topological order.
            domain: [M] chips that each block may take, as the bits of a word.
            log_probs: [M, chips], not necessarily normalised.
            best: keep only the likeliest completion of every cut; `draw` returns the likeliest
                cuts.
        """
        blocks, chips = len(order), net.chips
        self.net, self.order, self.best = net, order, best
        self.first, self.last = cut_windows(net, order, domain)
        self._prefix = np.zeros((chips, blocks + 1))
        self._mass = np.empty((chips, blocks + 1))
        self._total = np.empty((chips, blocks))
        odds = np.zeros_like(log_probs)
        self._base = _log_odds(log_probs, odds)
        _prefix_sums(order, odds, self._prefix)
        _sum_backwards(
            self.first, self.last, self._prefix, net.all_chips, best,
            np.empty((2, blocks + 1)), self._mass, self._total,
        )  # fmt: skip

    @property
    def log_partition(self) -> float:
        """Log Z; -inf when the order has no legal cuts."""
        return self._base + float(self._total[0, 0])

    def draw(self, random: UInt64[np.ndarray, "1"], chip: Int16[np.ndarray, "M"]) -> float:
        """Write [M] chips; return their log-probability."""
        cuts = np.empty(self.net.chips + 1, np.int64)
        pieces = _draw_cuts(self.first, self.last, self._mass, self._total, self.best, random, cuts)
        log_mass = 0.0
        for c in range(pieces):
            chip[self.order[cuts[c] : cuts[c + 1]]] = c
            log_mass += self._prefix[c, cuts[c + 1]] - self._prefix[c, cuts[c]]
        return log_mass - float(self._total[0, 0])


def log_odds(log_probs: Float64[np.ndarray, "M k"]) -> Float64[np.ndarray, "M k"]:
    """Return [M, k] log-probabilities less that of each block's likeliest chip, at least `NEVER`;
    zeros for a block whose chips are all -inf."""
    odds = np.zeros_like(log_probs)
    _log_odds(log_probs, odds)
    return odds


def cut_windows(
    net: Network, order: Int64[np.ndarray, "M"], domain: Int64[np.ndarray, "M"]
) -> tuple[Int64[np.ndarray, "M"], Int64[np.ndarray, "k M"]]:
    """Return [M] the first and [k, M] the last end of a piece that opens at each position.

    A piece on chip c from i ends before position e, first[i] <= e <= last[c, i].
    """
    blocks = len(order)
    first, furthest = np.empty(blocks, np.int64), np.full(blocks, blocks, np.int64)
    _first_ends(net, order, np.empty(blocks, np.int64), first)
    last = np.empty((net.chips, blocks), np.int64)
    for c in range(net.chips):
        if net.memory and (c == 0 or net.capacity[c] != net.capacity[c - 1]):
            held = np.zeros(len(net.group_bytes), np.int64)
            _furthest_ends(net, order, int(net.capacity[c]), held, furthest)
        _last_ends(order, domain, bit(c), furthest, last[c])
    return first, last


@compiled
@no_type_check
def _log_odds(log_probs, odds) -> float:
    """Write [M, k], where zeros come in; return the sum of what was taken from the rows."""
    blocks, chips = log_probs.shape
    base = 0.0
    for v in range(blocks):
        top = -np.inf
        for c in range(chips):
            top = max(top, log_probs[v, c])
        if top > -np.inf:
            base += top
            for c in range(chips):
                odds[v, c] = max(log_probs[v, c] - top, NEVER)
    return base


@compiled
@no_type_check
def _first_ends(net: Network, order, place, first) -> None:
    """Write [M] the first position where a piece that opens at each may end."""
    blocks = len(order)
    for i in range(blocks):
        place[order[i]] = i
    reach = 0
    for i in range(blocks):
        first[i] = max(i + 1, reach + 1 if net.triangle and i > 0 else 0)
        v = order[i]
        for j in range(net.succ_ptr[v], net.succ_ptr[v + 1]):
            reach = max(reach, place[net.succ[j]])


@compiled
@no_type_check
def _furthest_ends(net: Network, order, limit: int, held, furthest) -> None:
    """Write [M]: the largest e such that the weights of positions i..e-1 are at most ``limit``.

    ``held`` [G] holds zeros.
    """
    blocks = len(order)
    total, e = 0, 0
    for i in range(blocks):
        while e < blocks:
            v = order[e]
            extra = net.weight[v]
            for j in range(net.group_ptr[v], net.group_ptr[v + 1]):
                if held[net.group[j]] == 0:
                    extra += net.group_bytes[net.group[j]]
            if total + extra > limit:
                break
            total += extra
            for j in range(net.group_ptr[v], net.group_ptr[v + 1]):
                held[net.group[j]] += 1
            e += 1
        furthest[i] = e
        if e == i:
            e = i + 1
            continue
        v = order[i]
        total -= net.weight[v]
        for j in range(net.group_ptr[v], net.group_ptr[v + 1]):
            held[net.group[j]] -= 1
            if held[net.group[j]] == 0:
                total -= net.group_bytes[net.group[j]]


@compiled
@no_type_check
def _last_ends(order, domain, chip: int, furthest, last) -> None:
    """Write [M] the last ends on a chip (one bit): of the run of blocks that may take it, within
    its memory."""
    run = len(order)
    for i in range(len(order) - 1, -1, -1):
        if domain[order[i]] & chip == 0:
            run = i
        last[i] = min(furthest[i], run)


@compiled
@no_type_check
def _prefix_sums(order, odds, prefix) -> None:
    """Write [k, M + 1] sums of the log-odds along the order; zeros come in."""
    for c in range(len(prefix)):
        for i in range(len(order)):
            prefix[c, i + 1] = prefix[c, i] + odds[order[i], c]


@compiled
@no_type_check
def _sum_backwards(first, last, prefix, all_chips, best, suffix, mass, total) -> None:
    """Fill the table of completions.

    State: a window first[i]..last[c, i] over row ``mass[c]`` that moves backwards with i, as a
    queue of two stacks split at ``pivot``.

    | array | shape | meaning |
    |---|---|---|
    | prefix | [k, M + 1] | S |
    | mass | [k, M + 1] | W |
    | total | [k, M] | log-sum of W over the window of each position |
    | suffix | [2, M + 1] | maximum and scaled sum of W from the pivot to each end |
    """
    chips, blocks = total.shape
    for c in range(chips - 1, -1, -1):
        # W of the ends of chip c.
        for e in range(blocks):
            beyond = total[c + 1, e] - prefix[c + 1, e] if c + 1 < chips else -np.inf
            mass[c, e] = prefix[c, e] + beyond
        ends = not all_chips or c == chips - 1
        mass[c, blocks] = prefix[c, blocks] if ends else -np.inf
        # Windows of all positions, the last first.
        pivot = blocks + 1
        top, scaled = -np.inf, 0.0
        low = blocks + 1
        for i in range(blocks - 1, -1, -1):
            if last[c, i] < first[i]:
                total[c, i] = -np.inf
                continue
            if pivot > last[c, i]:
                # The back stack is used up: what is in the window becomes the new one.
                pivot = first[i]
                high = last[c, i]
                suffix_top, suffix_sum = -np.inf, 0.0
                for e in range(pivot, high + 1):
                    suffix_top, suffix_sum = _add(suffix_top, suffix_sum, mass[c, e], best)
                    suffix[0, e], suffix[1, e] = suffix_top, suffix_sum
                top, scaled, low = -np.inf, 0.0, pivot
            while low > first[i]:
                low -= 1
                top, scaled = _add(top, scaled, mass[c, low], best)
            high = last[c, i]
            total[c, i] = _log_sum(top, scaled, suffix[0, high], suffix[1, high], best)


@compiled
@no_type_check
def _add(top: float, scaled: float, value: float, best: bool):
    """Add exp(value) to the sum scaled * exp(top)."""
    if value == -np.inf:
        return top, scaled
    if value <= top:
        return top, scaled if best else scaled + np.exp(value - top)
    if best or top == -np.inf:
        return value, 1.0
    return value, scaled * np.exp(top - value) + 1.0


@compiled
@no_type_check
def _log_sum(top: float, scaled: float, other_top: float, other: float, best: bool) -> float:
    high = max(top, other_top)
    if best or high == -np.inf:
        return high
    return high + np.log(scaled * np.exp(top - high) + other * np.exp(other_top - high))


@compiled
@no_type_check
def _draw_cuts(first, last, mass, total, best, random, cuts) -> int:
    """Write the ends of the pieces into ``cuts`` after a 0; return how many pieces there are."""
    blocks, c, at = total.shape[1], 0, np.int64(0)
    cuts[0] = 0
    while at < blocks:
        left = next_uniform(random)
        chosen = first[at]
        for e in range(first[at], last[c, at] + 1):
            if mass[c, e] == -np.inf:
                continue
            if best:
                if mass[c, e] >= total[c, at]:
                    chosen = e
                    break
                continue
            chosen = e
            left -= np.exp(mass[c, e] - total[c, at])
            if left < 0.0:
                break
        at = chosen
        c += 1
        cuts[c] = at
    return c
