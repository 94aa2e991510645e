"""Moves of local search on a ring, compiled: blocks, groups and whole chips, all rules checked.

A move gives one block, or a connected group on its chip, another chip, and takes along what data
flow demands; or splits a chip in two, merges two neighbours, or does both, so that the number of
chips stays. Every proposal is scored anew from the chips of the blocks, in time linear in the
graph. The score is the logarithm of an 8-norm of all loads and links, which sees progress where
several chips are equally busy; the value is the largest of them, as the simulator has it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import no_type_check

import numpy as np
from jaxtyping import Float64, Int, Int64, UInt64

from go_rl.core.bitset import bit, lowest
from go_rl.core.compiled_struct import CompiledStruct, compiled
from go_rl.objectives.common.units import RingUnits
from go_rl.solvers.network import Network
from go_rl.solvers.tree_search import next_uniform

SPLIT, MERGE, EXCHANGE = 0.03, 0.06, 0.15
"""Cumulated shares of moves that split a chip, merge two, do both; the rest move blocks."""
GROUPS = 0.3
"""Share of block moves that take a group."""
BUSIEST = 0.5
"""Share of moves that start on the busiest chip."""
ILLEGAL = np.inf


@dataclass(frozen=True, eq=False)
class RelocationWalk(CompiledStruct):
    """One walk over the legal partitions; ``M`` blocks, ``k`` chips, ``G`` weight groups."""

    chip: Int64[np.ndarray, "M"]
    """[M] where the walk stands."""
    proposal: Int64[np.ndarray, "M"]
    """[M] a neighbour of it."""
    best: Int64[np.ndarray, "M"]
    """[M] the best partition so far."""
    load: Float64[np.ndarray, "k"]
    """[k] seconds of each chip in what was scored last."""
    link: Float64[np.ndarray, "k"]
    """[k] seconds of the link behind each chip."""
    held: Int64[np.ndarray, "k"]
    """[k] bytes of weights."""
    count: Int64[np.ndarray, "k"]
    """[k] blocks on each chip."""
    direct: Int64[np.ndarray, "k"]
    """[k] chips that each chip sends to, as the bits of a word."""
    reach: Int64[np.ndarray, "k"]
    """[k] chips that data from each chip can get to."""
    holders: Int64[np.ndarray, "G"]
    """[G] chips that hold each weight group."""
    stack: Int64[np.ndarray, "M"]
    """[M] blocks to be followed."""
    seen: Int64[np.ndarray, "M"]
    """[M] 1: on the stack or done; zeros between moves."""
    random: UInt64[np.ndarray, "1"]
    """State of the generator."""
    state: Float64[np.ndarray, "4"]
    """Score and value of `chip`, value of `best`, busiest chip of `chip`."""


SCORE, VALUE, BEST, WORST = range(4)
"""Places in `RelocationWalk.state`."""


def new_walk(net: Network, chip: Int[np.ndarray, "M"], seed: int) -> RelocationWalk:
    """Allocate a walk that starts from [M] chips."""
    blocks, chips = len(chip), net.chips
    words = np.zeros((5, chips), np.int64)
    return RelocationWalk(
        chip=chip.astype(np.int64), proposal=np.zeros(blocks, np.int64),
        best=chip.astype(np.int64), load=np.zeros(chips), link=np.zeros(chips), held=words[0],
        count=words[1], direct=words[2], reach=words[3],
        holders=np.zeros(len(net.group_bytes), np.int64), stack=np.zeros(blocks, np.int64),
        seen=np.zeros(blocks, np.int64),
        random=np.random.SeedSequence(seed).generate_state(1, np.uint64),
        state=np.array([ILLEGAL, ILLEGAL, ILLEGAL, 0.0]),
    )  # fmt: skip


@compiled
@no_type_check
def walk(net: Network, units: RingUnits, w: RelocationWalk, temperature: float, moves: int) -> None:
    """Make this many proposals at one temperature; the first call scores the start."""
    if w.state[SCORE] == ILLEGAL:
        for b in range(len(w.chip)):
            w.proposal[b] = w.chip[b]
        w.state[SCORE] = _score(net, units, w)
        _note(w)
    for _ in range(moves):
        if not _propose(net, w):
            continue
        score = _score(net, units, w)
        if score == ILLEGAL:
            continue
        worse = score - w.state[SCORE]
        if worse <= 0.0 or next_uniform(w.random) < np.exp(-worse / temperature):
            for b in range(len(w.chip)):
                w.chip[b] = w.proposal[b]
            w.state[SCORE] = score
            _note(w)


@compiled
@no_type_check
def _note(w: RelocationWalk) -> None:
    """Take over the value of what was scored last, and keep it where it is the best."""
    value, worst = 0.0, 0
    for c in range(len(w.load)):
        busy = max(w.load[c], w.link[c])
        if busy > value:
            value, worst = busy, c
    w.state[VALUE], w.state[WORST] = value, worst
    if value < w.state[BEST]:
        w.state[BEST] = value
        for b in range(len(w.chip)):
            w.best[b] = w.chip[b]


@compiled
@no_type_check
def _below(w: RelocationWalk, count: int) -> int:
    return min(int(next_uniform(w.random) * count), count - 1)


@compiled
@no_type_check
def _propose(net: Network, w: RelocationWalk) -> bool:
    """Write a neighbour to `proposal`; False: nothing was changed."""
    blocks, top = len(w.chip), np.int64(0)
    for b in range(blocks):
        w.proposal[b] = w.chip[b]
        top = max(top, w.chip[b])
    sort = next_uniform(w.random)
    if sort < EXCHANGE:
        merged = sort >= SPLIT
        if merged:
            if top == 0:
                return False
            c = _below(w, top)
            for b in range(blocks):
                if w.proposal[b] > c:
                    w.proposal[b] -= 1
            top -= 1
        if sort < SPLIT or sort >= MERGE:
            return top + 1 < net.chips and _split(net, w)
        return True
    return _relocate(net, w, top)


@compiled
@no_type_check
def _start(w: RelocationWalk) -> int:
    """Return a block, often one of the busiest chip."""
    blocks, worst = len(w.chip), int(w.state[WORST])
    b = _below(w, blocks)
    if next_uniform(w.random) < BUSIEST:
        for i in range(blocks):
            if w.chip[(b + i) % blocks] == worst:
                return (b + i) % blocks
    return b


@compiled
@no_type_check
def _split(net: Network, w: RelocationWalk) -> bool:
    """Give a block and all that depends on it on its chip, or all but what it depends on, a new
    chip behind it."""
    b, later = _start(w), next_uniform(w.random) < 0.5
    c = w.proposal[b]
    _mark(net, w, b, c, c, later)
    kept = 0
    for x in range(len(w.chip)):
        if w.proposal[x] > c or (w.proposal[x] == c and (w.seen[x] == 1) == later):
            w.proposal[x] += 1
        elif w.proposal[x] == c:
            kept += 1
        w.seen[x] = 0
    return kept > 0


@compiled
@no_type_check
def _mark(net: Network, w: RelocationWalk, b: int, low: int, high: int, later: bool) -> int:
    """Mark in `seen`, and list in `stack`, a block and all it reaches (``later``) or that reaches
    it on chips ``low`` to ``high``; return how many."""
    if w.seen[b] == 1:
        return 0
    w.stack[0], w.seen[b] = b, 1
    done, found = 0, 1
    while done < found:
        v = w.stack[done]
        done += 1
        first = net.succ_ptr[v] if later else net.pred_ptr[v]
        end = net.succ_ptr[v + 1] if later else net.pred_ptr[v + 1]
        for i in range(first, end):
            x = net.succ[i] if later else net.pred[i]
            if w.seen[x] == 0 and low <= w.proposal[x] <= high:
                w.seen[x] = 1
                w.stack[found] = x
                found += 1
    return found


@compiled
@no_type_check
def _grow(net: Network, w: RelocationWalk, b: int, size: int) -> int:
    """List in `stack` up to ``size`` connected blocks on the chip of one; return how many."""
    w.stack[0], w.seen[b] = b, 1
    done, found = 0, 1
    while done < found and found < size:
        v = w.stack[done]
        done += 1
        for i in range(net.pred_ptr[v], net.pred_ptr[v + 1]):
            x = net.pred[i]
            if w.seen[x] == 0 and w.chip[x] == w.chip[b] and found < size:
                w.seen[x] = 1
                w.stack[found] = x
                found += 1
        for i in range(net.succ_ptr[v], net.succ_ptr[v + 1]):
            x = net.succ[i]
            if w.seen[x] == 0 and w.chip[x] == w.chip[b] and found < size:
                w.seen[x] = 1
                w.stack[found] = x
                found += 1
    for i in range(found):
        w.seen[w.stack[i]] = 0
    return found


@compiled
@no_type_check
def _relocate(net: Network, w: RelocationWalk, top: int) -> bool:
    """Move a block, or a group, to the chip of a neighbour, a chip beside it or any."""
    b, size = _start(w), 1
    if next_uniform(w.random) < GROUPS:
        size = 2 + int(np.exp(next_uniform(w.random) * np.log(max(w.count[w.chip[b]], 1) + 1.0)))
    target = _target(net, w, b, top)
    if target < 0 or target >= net.chips or target == w.chip[b]:
        return False
    found = _grow(net, w, b, size)
    for i in range(found):
        w.proposal[w.stack[i]] = target
    later = target > w.chip[b]
    _carry(net, w, found, target, later)
    return True


@compiled
@no_type_check
def _target(net: Network, w: RelocationWalk, b: int, top: int) -> int:
    sort = next_uniform(w.random)
    before = net.pred_ptr[b + 1] - net.pred_ptr[b]
    beside = before + net.succ_ptr[b + 1] - net.succ_ptr[b]
    if sort < 0.4 and beside > 0:
        i = _below(w, beside)
        if i < before:
            return w.chip[net.pred[net.pred_ptr[b] + i]]
        return w.chip[net.succ[net.succ_ptr[b] + i - before]]
    if sort < 0.8:
        return w.chip[b] + (1 if next_uniform(w.random) < 0.5 else -1)
    return _below(w, top + 2)


@compiled
@no_type_check
def _carry(net: Network, w: RelocationWalk, found: int, target: int, later: bool) -> None:
    """Move along what the first ``found`` blocks of `stack` force: data flows upwards."""
    done = 0
    while done < found:
        v = w.stack[done]
        done += 1
        first = net.succ_ptr[v] if later else net.pred_ptr[v]
        end = net.succ_ptr[v + 1] if later else net.pred_ptr[v + 1]
        for i in range(first, end):
            x = net.succ[i] if later else net.pred[i]
            if (w.proposal[x] < target) if later else (w.proposal[x] > target):
                w.proposal[x] = target
                w.stack[found] = x
                found += 1


@compiled
@no_type_check
def _score(net: Network, units: RingUnits, w: RelocationWalk) -> float:
    """Return the logarithm of the 8-norm of loads and links of `proposal`; `ILLEGAL` where it
    breaks a rule. Leaves `load` and `link` as they are then.

    State in ``w``, over ``k`` chips and ``G`` groups of shared weights:

    - ``load``, ``link`` [k]: seconds of work, and of the link behind the chip;
    - ``held``, ``count`` [k]: bytes of weights, and blocks;
    - ``direct`` [k]: set of higher chips with a consumer of the chip's blocks;
    - ``holders`` [G]: set of chips that hold the group.
    """
    chip, chips = w.proposal, net.chips
    for c in range(chips):
        w.load[c], w.link[c] = 0.0, 0.0
        w.held[c], w.count[c], w.direct[c] = 0, 0, 0
    for g in range(len(w.holders)):
        w.holders[g] = 0
    # Blocks: domains, loads, weights (a shared group once a chip), and the direction of edges.
    for b in range(len(chip)):
        c = chip[b]
        if net.start[b] & bit(c) == 0:
            return ILLEGAL
        w.count[c] += 1
        w.load[c] += units.work[b]
        w.held[c] += net.weight[b]
        for i in range(net.group_ptr[b], net.group_ptr[b + 1]):
            g = net.group[i]
            if w.holders[g] & bit(c) == 0:
                w.holders[g] |= bit(c)
                w.held[c] += net.group_bytes[g]
        for i in range(net.succ_ptr[b], net.succ_ptr[b + 1]):
            d = chip[net.succ[i]]
            if d < c:
                return ILLEGAL
            if d > c:
                w.direct[c] |= bit(d)
    if not _within_rules(net, w):
        return ILLEGAL
    # Links: a tensor crosses every link from its source to its farthest user.
    for t in range(len(units.tensor_seconds)):
        low = chip[units.tensor_source[t]]
        high = low
        for i in range(units.use_ptr[t], units.use_ptr[t + 1]):
            high = max(high, chip[units.user[i]])
        for c in range(low, high):
            w.link[c] += units.tensor_seconds[t]
    largest = 1e-300
    for c in range(chips):
        if w.link[c] > 0.0:
            w.link[c] += units.latency
        largest = max(largest, max(w.load[c], w.link[c]))
    # log ||x||_8 = log max x + log(sum (x / max x)^8) / 8, which cannot overflow.
    total = 0.0
    for c in range(chips):
        for busy in (w.load[c] / largest, w.link[c] / largest):
            square = busy * busy
            square *= square
            total += square * square
    return np.log(largest) + np.log(total) / 8


@compiled
@no_type_check
def _within_rules(net: Network, w: RelocationWalk) -> bool:
    """Whether no chip is skipped or too full, and no chip triangle closes."""
    empty = False
    for c in range(net.chips):
        if w.count[c] == 0:
            if net.all_chips:
                return False
            empty = True
        elif empty or (net.memory and w.held[c] > net.capacity[c]):
            return False
    if not net.triangle:
        return True
    for c in range(net.chips - 1, -1, -1):
        far, rest = np.int64(0), w.direct[c]
        while rest:
            far |= w.reach[lowest(rest)]
            rest &= rest - 1
        if w.direct[c] & far:
            return False
        w.reach[c] = w.direct[c] | far
    return True
