"""The states of dynamic programming over ideals, layer by layer: see `ideal_dp`.

Compiled; the arrays are described at `RingUnits` and `IdealLimits` (read) and `Frontier` (written).
"""

from __future__ import annotations

from typing import no_type_check

import numpy as np

from go_rl.core.bitset import lowest
from go_rl.core.compiled_struct import compiled
from go_rl.objectives.common.units import RingUnits
from go_rl.objectives.ring.ideals.frontier import (
    CANDIDATES_A_CALL,
    CHIPS,
    CUT,
    DONE,
    EXTEND,
    GROW,
    HELD,
    HELD_B,
    INSIDE,
    KEY,
    LAYER,
    LOAD,
    LOAD_B,
    MOVE,
    NEED,
    NO_STATE,
    OPEN_ONE,
    OPEN_TWO,
    PARENT,
    PAUSE,
    READY,
    SIDE,
    SIDE_A,
    SIDE_B,
    STATES,
    TOUCHED,
    TWO,
    UNIT,
    WASTE,
    Frontier,
    IdealLimits,
)
from go_rl.objectives.ring.ideals.selection import select


@compiled
@no_type_check
def grow_layers(u: RingUnits, p: IdealLimits, f: Frontier) -> int:
    """Grow the states unit by unit to whole partitions; return the best last state, `NO_STATE`,
    `DONE`, `GROW` or `PAUSE`. After the last two the search goes on where it stopped."""
    cursor, units, grown = f.cursor, len(u.work), 0
    if cursor[LAYER] == 0:
        for v in range(units):
            if u.pred_ptr[v + 1] == u.pred_ptr[v]:
                _insert(f.sets[0, READY, 0], v)
    while cursor[LAYER] < units:
        if grown > CANDIDATES_A_CALL:
            return PAUSE
        found = _expand(u, p, f)
        if found < 0:
            return GROW
        if found == 0:
            return NO_STATE
        grown += found
        _advance(u, p, f, select(f, found, p.width))
    best = NO_STATE
    for n in range(cursor[STATES]):
        if f.two[n] and f.value[n, LOAD_B] < 0:
            continue
        if best < 0 or f.count[n] < f.count[best]:
            best = np.int64(n)
    return best if best >= 0 else DONE


@compiled
@no_type_check
def read_stages(f: Frontier, last: int, order, stage) -> None:
    """Follow a last state back; write [U] the order of the units and [U] their stages."""
    m, s = f.count[last], last
    for layer in range(len(order), 0, -1):
        v, mark = f.history[layer, s, 1], f.marks[layer, s]
        order[layer - 1] = v
        stage[v] = m - 1 if mark[2] == 0 or mark[1] == 1 else m - 2
        if mark[0] != EXTEND:
            m -= mark[0]
        s = np.int64(f.history[layer, s, 0])


@compiled
@no_type_check
def _expand(u: RingUnits, p: IdealLimits, f: Frontier) -> int:
    """Write the candidates of the next layer; return how many, or -1 where there is no room."""
    ci, cf, layer = f.candidate, f.candidate_value, f.cursor[LAYER]
    sets = f.sets[layer & 1]
    found = np.int64(0)
    for s in range(f.cursor[STATES]):
        here = sets[INSIDE, s]
        may_open = layer == 0 or f.value[s, CUT] <= p.link
        if p.triangle and may_open and layer > 0:
            may_open = not _any(sets[NEED, s]) and not (f.two[s] and f.value[s, LOAD_B] < 0)
        for word in range(len(here)):
            bits = sets[READY, s, word]
            while bits:
                v = word * 64 + lowest(bits)
                bits &= bits - 1
                if found + 4 > len(ci):
                    return -1
                first = found
                found = _moves(u, p, f, s, v, may_open, first)
                if found == first:
                    continue
                label = f.key[s] ^ _hash_of(v)
                cut = _cut_after(u, p, here, v, f.value[s, CUT])
                kept_to = first
                for c in range(first, found):
                    # What is left must fit: lost room + all work <= k T.
                    if cf[c, WASTE] > p.room:
                        continue
                    for i in range(7):
                        ci[kept_to, i] = ci[c, i]
                    for i in range(6):
                        cf[kept_to, i] = cf[c, i]
                    ci[kept_to, PARENT], ci[kept_to, UNIT] = s, v
                    ci[kept_to, KEY], cf[kept_to, CUT] = label, cut
                    kept_to += 1
                found = kept_to
    return found


@compiled
@no_type_check
def _moves(
    u: RingUnits, p: IdealLimits, f: Frontier, s: int, v: int, may_open: bool, found: int
) -> int:
    """Write the candidates that add unit ``v`` to state ``s``; return the new number of them."""
    ci, cf, value = f.candidate, f.candidate_value, f.value[s]
    sets, layer, two = f.sets[f.cursor[LAYER] & 1], f.cursor[LAYER], f.two[s]
    work, weight = u.work[v], u.weight[v]
    on_a, on_b = True, p.triangle and two
    # Side A or B is open to v only if no predecessor of v is on the other side.
    if on_b:
        for i in range(u.pred_ptr[v], u.pred_ptr[v + 1]):
            on_a = on_a and not _has(sets[SIDE_B, s], u.pred[i])
            on_b = on_b and not _has(sets[SIDE_A, s], u.pred[i])
    # Add v to side A.
    if layer > 0 and on_a:
        load, held = value[LOAD] + work, value[HELD] + weight
        if load <= p.seconds and held <= p.weight_limit:
            _extend(ci[found], cf[found], value, f.count[s], np.int64(0), two)
            cf[found, LOAD], cf[found, HELD] = load, held
            found += 1
    # Add v to side B.
    if on_b:
        load, held = max(value[LOAD_B], 0.0) + work, value[HELD_B] + weight
        if load <= p.seconds and held <= p.weight_limit:
            _extend(ci[found], cf[found], value, f.count[s], np.int64(1), np.bool_(True))
            cf[found, LOAD_B], cf[found, HELD_B] = load, held
            found += 1
    # Open a stage of one chip or two; what the last one leaves of T, T - load, is waste.
    if may_open and weight <= p.weight_limit:
        lost = value[WASTE]
        if layer > 0:
            lost += p.seconds - value[LOAD]
            if two:
                lost += p.seconds - value[LOAD_B]
        for chips in range(1, 3 if p.triangle else 2):
            if chips > p.stages - f.count[s]:
                break
            ci[found, MOVE] = OPEN_ONE if chips == 1 else OPEN_TWO
            ci[found, CHIPS] = f.count[s] + chips
            ci[found, SIDE], ci[found, TWO] = 0, chips == 2
            cf[found, LOAD], cf[found, HELD] = work, weight
            cf[found, LOAD_B] = -1.0 if chips == 2 else 0.0
            cf[found, HELD_B], cf[found, WASTE] = 0.0, lost
            found += 1
    return found


@compiled
@no_type_check
def _extend(numbers, values, parent, count: int, side: int, two: bool) -> None:
    numbers[MOVE], numbers[CHIPS] = EXTEND, count
    numbers[SIDE], numbers[TWO] = side, two
    for i in range(6):
        values[i] = parent[i]


@compiled
@no_type_check
def _cut_after(u: RingUnits, p: IdealLimits, here, v: int, cut: float) -> float:
    """Link seconds of the ideal ``here`` + v, from those of ``here``."""
    for i in range(p.made_ptr[v], p.made_ptr[v + 1]):
        cut += u.tensor_seconds[p.made[i]]
    for i in range(p.used_ptr[v], p.used_ptr[v + 1]):
        t = p.used[i]
        last = True
        for j in range(u.use_ptr[t], u.use_ptr[t + 1]):
            w = u.user[j]
            if w != v and not _has(here, w):
                last = False
                break
        if last:
            cut -= u.tensor_seconds[t]
    return cut


@compiled
@no_type_check
def _advance(u: RingUnits, p: IdealLimits, f: Frontier, kept: int) -> None:
    """Make the first ``kept`` candidates in ``order`` the states of the next layer."""
    ci, layer = f.candidate, f.cursor[LAYER]
    for n in range(kept):
        c = f.order[n]
        history, marks = f.history[layer + 1, n], f.marks[layer + 1, n]
        history[0], history[1] = ci[c, PARENT], ci[c, UNIT]
        marks[0], marks[1], marks[2] = ci[c, MOVE], ci[c, SIDE], ci[c, TWO]
        _fill_sets(u, p.triangle, f.sets[layer & 1], f.sets[1 - layer & 1], ci[c], n)
    for n in range(kept):
        c = f.order[n]
        f.key[n], f.count[n], f.two[n] = ci[c, KEY], ci[c, CHIPS], ci[c, TWO] == 1
        for i in range(6):
            f.value[n, i] = f.candidate_value[c, i]
    f.cursor[LAYER], f.cursor[STATES] = layer + 1, kept


@compiled
@no_type_check
def _fill_sets(u: RingUnits, triangle: bool, sets, next_sets, candidate, n: int) -> None:
    """Write the bit sets of state ``n`` of the next layer."""
    s, v = candidate[PARENT], candidate[UNIT]
    inside, ready = next_sets[INSIDE, n], next_sets[READY, n]
    _copy(sets[INSIDE, s], inside)
    _copy(sets[READY, s], ready)
    _insert(inside, v)
    _erase(ready, v)
    for i in range(u.succ_ptr[v], u.succ_ptr[v + 1]):
        w = u.succ[i]
        whole = True
        for j in range(u.pred_ptr[w], u.pred_ptr[w + 1]):
            if not _has(inside, u.pred[j]):
                whole = False
                break
        if whole:
            _insert(ready, w)
    if not triangle:
        return
    opens, need, touched = candidate[MOVE] != EXTEND, next_sets[NEED, n], next_sets[TOUCHED, n]
    _copy(sets[TOUCHED, s] if opens else sets[NEED, s], need)
    _copy(sets[TOUCHED, s], touched)
    for i in range(u.succ_ptr[v], u.succ_ptr[v + 1]):
        _insert(touched, u.succ[i])
    _erase(need, v)
    _erase(touched, v)
    for kind in range(SIDE_A, SIDE_B + 1):
        _copy(sets[kind, s], next_sets[kind, n])
        if opens:
            for word in range(len(need)):
                next_sets[kind, n, word] = 0
    _insert(next_sets[SIDE_B if candidate[SIDE] else SIDE_A, n], v)


@compiled
@no_type_check
def _hash_of(v: int) -> int:
    z = np.uint64(v + 1) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.int64(z ^ (z >> np.uint64(31)))


@compiled
@no_type_check
def _has(bits, v: int) -> bool:
    return (bits[v >> 6] >> np.int64(v & 63)) & 1 == 1


@compiled
@no_type_check
def _any(bits) -> bool:
    for word in range(len(bits)):
        if bits[word] != 0:
            return True
    return False


@compiled
@no_type_check
def _insert(bits, v: int) -> None:
    bits[v >> 6] |= np.int64(1) << np.int64(v & 63)


@compiled
@no_type_check
def _erase(bits, v: int) -> None:
    bits[v >> 6] &= ~(np.int64(1) << np.int64(v & 63))


@compiled
@no_type_check
def _copy(source, target) -> None:
    for i in range(len(target)):
        target[i] = source[i]
