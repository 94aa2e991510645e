"""Bounded dynamic programming over ideals: can the units be cut into k stages of at most T?

An ideal is a set of units closed under predecessors; a stage is the difference of two ideals. The
cut of an ideal (the tensors that leave it) is what the link behind its stage carries, and depends
on the ideal alone. States (ideal, stages, load of the open stage) grow unit by unit; of states
with the same ideal only those that no other beats in stages and load survive. Kept whole, this is
exact, so an empty frontier *proves* that no partition with that T exists; beyond ``width`` states a
layer the least wasteful are kept, and it is a heuristic (Bautista and Pereira, "A dynamic
programming based heuristic for the assembly line balancing problem", EJOR 2009).

Under the triangle rule a tensor that crosses a cut must be consumed before the next cut; a stage
may be two chips side by side without an edge between them: then all chip paths between two stages
are equally long, and no triangle can close. That is sufficient, not necessary, so an empty frontier
proves nothing under that rule.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import no_type_check

import numpy as np
from jaxtyping import Int32
from numba import njit

from go_rl.search.ring_units import RingUnits
from go_rl.simulate.bitset import lowest

FOUND, NONE, TRUNCATED = 0, 1, 2
"""A partition; proved that there is none; none among the states kept."""

TIE = 1e-3
"""Weight of a state's cut beside its waste when states must be dropped."""


@dataclass(frozen=True)
class Limits:
    """What a partition must keep."""

    seconds: float
    """T: the largest stage and link."""
    stages: int
    """k."""
    weight: float
    """Bytes of weights a stage may hold; inf: unlimited."""
    triangle: bool
    width: int
    """States kept a layer."""


def stages_within(
    units: RingUnits, limits: Limits
) -> tuple[int, Int32[np.ndarray, "U"], Int32[np.ndarray, "U"]]:
    """Return (verdict, order [U], stage [U] by unit); the arrays mean something when FOUND."""
    order = np.zeros(units.num_units, np.int32)
    stage = np.zeros(units.num_units, np.int32)
    if units.num_units == 0:
        return FOUND, order, stage
    # Work sums are rounded differently by every order of adding; a hair of slack hides that.
    seconds = limits.seconds * (1.0 + 1e-12)
    link = max(seconds - units.latency, 1e-12 * seconds)
    verdict = _search(
        units.work,
        units.weight,
        (units.pred_ptr, units.pred, units.succ_ptr, units.succ),
        (units.tensor_seconds, units.tensor_source, units.use_ptr, units.user),
        _tensors_of(units.tensor_source, units.num_units),
        _uses_of(units),
        (seconds, link, limits.weight),
        limits.stages,
        limits.triangle,
        limits.width,
        order,
        stage,
    )
    return verdict, order, stage


def _tensors_of(source: np.ndarray, units: int) -> tuple[np.ndarray, np.ndarray]:
    offsets = np.zeros(units + 1, np.int64)
    np.cumsum(np.bincount(source, minlength=units), out=offsets[1:])
    return offsets, np.argsort(source, kind="stable").astype(np.int32)


def _uses_of(units: RingUnits) -> tuple[np.ndarray, np.ndarray]:
    tensor = np.repeat(np.arange(len(units.tensor_seconds)), np.diff(units.use_ptr))
    offsets = np.zeros(units.num_units + 1, np.int64)
    np.cumsum(np.bincount(units.user, minlength=units.num_units), out=offsets[1:])
    return offsets, tensor[np.argsort(units.user, kind="stable")].astype(np.int32)


@njit(cache=True, inline="always")
@no_type_check
def _has(bits, v) -> bool:
    return (bits[v >> 6] >> np.int64(v & 63)) & 1 == 1


@njit(cache=True)
@no_type_check
def _hash_of(v: int) -> int:
    z = np.uint64(v + 1) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.int64(z ^ (z >> np.uint64(31)))


@njit(cache=True)
@no_type_check
def _cut_after(here, v, cut, tensor_seconds, use_ptr, user, made, used) -> float:
    """Link seconds of the ideal ``here`` + v, from those of ``here``."""
    made_ptr, made_ids = made
    used_ptr, used_ids = used
    for i in range(made_ptr[v], made_ptr[v + 1]):
        cut += tensor_seconds[made_ids[i]]
    for i in range(used_ptr[v], used_ptr[v + 1]):
        t = used_ids[i]
        last = True
        for j in range(use_ptr[t], use_ptr[t + 1]):
            w = user[j]
            if w != v and not _has(here, w):
                last = False
                break
        if last:
            cut -= tensor_seconds[t]
    return cut


@njit(cache=True)
@no_type_check
def _grown(table):
    bigger = np.empty((2 * len(table), table.shape[1]), table.dtype)
    bigger[: len(table)] = table
    return bigger


@njit(cache=True)
@no_type_check
def _insert(bits, v) -> None:
    bits[v >> 6] |= np.int64(1) << np.int64(v & 63)


@njit(cache=True)
@no_type_check
def _erase(bits, v) -> None:
    bits[v >> 6] &= ~(np.int64(1) << np.int64(v & 63))


EXTEND, OPEN_ONE, OPEN_TWO = 0, 1, 2
"""A unit joins the open stage, or opens a stage of one chip or of two side by side."""
PARENT, UNIT, MOVE, KEY, CHIPS, SIDE, TWO = 0, 1, 2, 3, 4, 5, 6
"""Columns of a candidate's integers."""
LOAD, HELD, CUT, WASTE, LOAD_B, HELD_B = 0, 1, 2, 3, 4, 5
"""Columns of a state's numbers; _B: the second chip of a double stage."""
INSIDE, READY, NEED, TOUCHED, SIDE_A, SIDE_B = 0, 1, 2, 3, 4, 5
"""Bit sets of a state: the ideal; units that may come next; units that must come before the next
cut; units behind the ideal's edges; units on each chip of the open stage."""


@njit(cache=True, nogil=True)
@no_type_check
def _search(work, weight, graph, tensors, made, used, limit, stages, triangle, width, order, stage):
    pred_ptr, pred, succ_ptr, succ = graph
    tensor_seconds, _, use_ptr, user = tensors
    seconds, link, weight_limit = limit
    units = len(work)
    if work.max() > seconds:
        return 1
    room = stages * seconds - work.sum() + 1e-12 * stages * seconds
    words = (units + 63) // 64
    kinds = 6 if triangle else 2
    sets = np.zeros((kinds, width, words), np.int64)
    next_sets = np.zeros((kinds, width, words), np.int64)
    value = np.zeros((width, 6))
    count, key = np.zeros(width, np.int64), np.zeros(width, np.int64)
    two = np.zeros(width, np.bool_)
    history = np.zeros((units + 1, width, 2), np.int32)
    marks = np.zeros((units + 1, width, 3), np.int8)
    for v in range(units):
        if pred_ptr[v + 1] == pred_ptr[v]:
            _insert(sets[READY, 0], v)
    states, truncated = 1, False
    ci, cf = np.empty((1024, 7), np.int64), np.empty((1024, 6))
    for step in range(units):
        found = 0
        for s in range(states):
            here = sets[INSIDE, s]
            left = stages - count[s]
            may_open = step == 0 or value[s, CUT] <= link
            if triangle and may_open and step > 0:
                may_open = not sets[NEED, s].any() and not (two[s] and value[s, LOAD_B] < 0)
            for word in range(words):
                bits = sets[READY, s, word]
                while bits:
                    v = word * 64 + lowest(bits)
                    bits &= bits - 1
                    if found + 4 > len(ci):
                        ci, cf = _grown(ci), _grown(cf)
                    label, first = key[s] ^ _hash_of(v), found
                    on_a, on_b = True, triangle and two[s]
                    if on_b:
                        for i in range(pred_ptr[v], pred_ptr[v + 1]):
                            on_a = on_a and not _has(sets[SIDE_B, s], pred[i])
                            on_b = on_b and not _has(sets[SIDE_A, s], pred[i])
                    if step > 0 and on_a:
                        load, held = value[s, LOAD] + work[v], value[s, HELD] + weight[v]
                        if load <= seconds and held <= weight_limit:
                            ci[found, MOVE], ci[found, CHIPS] = EXTEND, count[s]
                            ci[found, SIDE], ci[found, TWO] = 0, two[s]
                            cf[found] = value[s]
                            cf[found, LOAD], cf[found, HELD] = load, held
                            found += 1
                    if on_b:
                        load = max(value[s, LOAD_B], 0.0) + work[v]
                        held = value[s, HELD_B] + weight[v]
                        if load <= seconds and held <= weight_limit:
                            ci[found, MOVE], ci[found, CHIPS] = EXTEND, count[s]
                            ci[found, SIDE], ci[found, TWO] = 1, True
                            cf[found] = value[s]
                            cf[found, LOAD_B], cf[found, HELD_B] = load, held
                            found += 1
                    if may_open and weight[v] <= weight_limit:
                        lost = value[s, WASTE]
                        if step > 0:
                            lost += seconds - value[s, LOAD]
                            if two[s]:
                                lost += seconds - value[s, LOAD_B]
                        for chips in range(1, 3 if triangle else 2):
                            if chips > left:
                                break
                            ci[found, MOVE] = OPEN_ONE if chips == 1 else OPEN_TWO
                            ci[found, CHIPS] = count[s] + chips
                            ci[found, SIDE], ci[found, TWO] = 0, chips == 2
                            cf[found, LOAD], cf[found, HELD] = work[v], weight[v]
                            cf[found, LOAD_B] = -1.0 if chips == 2 else 0.0
                            cf[found, HELD_B], cf[found, WASTE] = 0.0, lost
                            found += 1
                    if found > first:
                        cut = _cut_after(
                            here, v, value[s, CUT], tensor_seconds, use_ptr, user, made, used
                        )
                    kept_to = first
                    for c in range(first, found):
                        # What is left must fit: lost room + all work <= k T.
                        if cf[c, WASTE] > room:
                            continue
                        ci[kept_to], cf[kept_to] = ci[c], cf[c]
                        ci[kept_to, PARENT], ci[kept_to, UNIT] = s, v
                        ci[kept_to, KEY], cf[kept_to, CUT] = label, cut
                        kept_to += 1
                    found = kept_to
        if found == 0:
            return 2 if truncated else 1
        kept = _select(ci, cf, found, width)
        truncated = truncated or (len(kept) == width and found > width)
        states = len(kept)
        for n in range(states):
            c = kept[n]
            s, v, move = ci[c, PARENT], ci[c, UNIT], ci[c, MOVE]
            history[step + 1, n, 0], history[step + 1, n, 1] = s, v
            marks[step + 1, n, 0], marks[step + 1, n, 1] = move, ci[c, SIDE]
            marks[step + 1, n, 2] = ci[c, TWO]
            for kind in range(2):
                next_sets[kind, n] = sets[kind, s]
            _insert(next_sets[INSIDE, n], v)
            _erase(next_sets[READY, n], v)
            for i in range(succ_ptr[v], succ_ptr[v + 1]):
                w = succ[i]
                whole = True
                for j in range(pred_ptr[w], pred_ptr[w + 1]):
                    if not _has(next_sets[INSIDE, n], pred[j]):
                        whole = False
                        break
                if whole:
                    _insert(next_sets[READY, n], w)
            if triangle:
                opens = move != EXTEND
                next_sets[NEED, n] = sets[TOUCHED, s] if opens else sets[NEED, s]
                next_sets[TOUCHED, n] = sets[TOUCHED, s]
                for i in range(succ_ptr[v], succ_ptr[v + 1]):
                    _insert(next_sets[TOUCHED, n], succ[i])
                _erase(next_sets[NEED, n], v)
                _erase(next_sets[TOUCHED, n], v)
                for kind in range(SIDE_A, SIDE_B + 1):
                    if opens:
                        next_sets[kind, n] = 0
                    else:
                        next_sets[kind, n] = sets[kind, s]
                _insert(next_sets[SIDE_B if ci[c, SIDE] else SIDE_A, n], v)
        for n in range(states):
            c = kept[n]
            key[n], count[n], two[n] = ci[c, KEY], ci[c, CHIPS], ci[c, TWO] == 1
            value[n] = cf[c]
        sets, next_sets = next_sets, sets
    best = -1
    for n in range(states):
        if two[n] and value[n, LOAD_B] < 0:
            continue
        if best < 0 or count[n] < count[best]:
            best = n
    if best < 0:
        return 2
    m, s = count[best], best
    for step in range(units, 0, -1):
        v = history[step, s, 1]
        order[step - 1] = v
        stage[v] = m - 1 if marks[step, s, 2] == 0 or marks[step, s, 1] == 1 else m - 2
        if marks[step, s, 0] != EXTEND:
            m -= marks[step, s, 0]
        s = history[step, s, 0]
    return 0


@njit(cache=True)
@no_type_check
def _select(ci, cf, found: int, width: int):
    """Drop candidates that another with the same ideal beats; keep the ``width`` least wasteful."""
    order = np.argsort(ci[:found, KEY])
    alive = np.ones(found, np.bool_)
    begin = 0
    while begin < found:
        end = begin + 1
        while end < found and ci[order[end], KEY] == ci[order[begin], KEY]:
            end += 1
        for i in range(begin, end):
            a = order[i]
            if not alive[a]:
                continue
            for j in range(begin, end):
                b = order[j]
                if i != j and alive[b] and _beats(ci, cf, a, b):
                    alive[b] = False
        begin = end
    kept = np.flatnonzero(alive)
    if len(kept) > width:
        worth = cf[kept, WASTE] + TIE * cf[kept, CUT]
        kept = kept[np.argsort(worth, kind="mergesort")[:width]]
    return kept


@njit(cache=True)
@no_type_check
def _beats(ci, cf, a: int, b: int) -> bool:
    if ci[a, CHIPS] > ci[b, CHIPS] or ci[a, TWO] != ci[b, TWO]:
        return False
    if cf[a, LOAD] > cf[b, LOAD] or cf[a, HELD] > cf[b, HELD]:
        return False
    return cf[a, LOAD_B] <= cf[b, LOAD_B] and cf[a, HELD_B] <= cf[b, HELD_B]
