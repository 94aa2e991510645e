"""Constraint propagation over chip domains: every kernel removes only values no solution uses.

Rules, each for blocks u, v, w and chips a, b, c (f is the partition):
  order      u -> v:  min D(u) <= f(v),  f(u) <= max D(v)
  between    u -> v and u ~> w ~> v:  f(w) in {f(u), f(v)}       (from the triangle rule)
  triangle   u -> v with f(u) = a: f(v) = c is out when a -> c would close a chip triangle
  no skip    chips 0..max f are all used
  memory     weights placed on a chip fit, and so do the sums that must go to a prefix or suffix
"""

from __future__ import annotations

from typing import no_type_check

import numpy as np
from numba import njit

from go_rl.simulate.bitset import bit, highest, lowest, up_to
from go_rl.solvers.network import Network, State

OK = 0
ORDER, BETWEEN, TRIANGLE, NO_SKIP, MEMORY = 1, 2, 3, 4, 5
"""Clash codes: which rule emptied a domain."""

TRAIL, DONE, RELATIONS, HEAD, SIZE, CLASH_RULE, CLASH_BLOCK = 0, 1, 2, 3, 4, 5, 6
"""Places in `State.cursor`: trail lengths, queue head and size, the last clash."""


@njit(cache=True)
@no_type_check
def reset(net: Network, st: State) -> int:
    """Fill a state with the initial domains and propagate; return OK or the clash."""
    blocks, chips = len(net.weight), net.chips
    st.cursor[:] = 0
    st.count[:] = 0
    st.placed[:] = 0
    st.lows[:] = 0
    st.span[:] = 0
    st.low_weight[:] = 0
    st.high_weight[:] = 0
    st.free[:] = net.capacity
    st.holds[:] = 0
    st.done[:] = False
    st.relation[:] = 0
    st.queued[:] = True
    for v in range(blocks):
        d = net.start[v]
        st.domain[v] = d
        st.queue[v] = v
        if d == 0:
            st.cursor[CLASH_RULE] = MEMORY if net.memory else NO_SKIP
            st.cursor[CLASH_BLOCK] = v
            return st.cursor[CLASH_RULE]
        for c in range(chips):
            if d & bit(c):
                st.count[c] += 1
        st.lows[lowest(d)] += 1
        st.span[lowest(d), highest(d)] += 1
        st.low_weight[lowest(d)] += net.weight[v]
        st.high_weight[highest(d)] += net.weight[v]
    st.cursor[SIZE] = blocks
    return propagate(net, st)


@njit(cache=True)
@no_type_check
def clash(st: State, rule: int, v: int) -> int:
    """Remember which rule clashed at which block, and return the rule."""
    st.cursor[CLASH_RULE] = rule
    st.cursor[CLASH_BLOCK] = v
    return rule


@njit(cache=True)
@no_type_check
def enqueue(st: State, v: int) -> None:
    """Put a block into the propagation queue unless it waits there."""
    if not st.queued[v]:
        st.queued[v] = True
        tail = (st.cursor[HEAD] + st.cursor[SIZE]) % len(st.queue)
        st.queue[tail] = v
        st.cursor[SIZE] += 1


@njit(cache=True)
@no_type_check
def _move(net: Network, st: State, v: int, old: int, new: int) -> None:
    """Update the counters for a domain that changes from ``old`` to ``new``."""
    removed = old & ~new
    while removed:
        c = lowest(removed)
        st.count[c] -= 1
        removed &= removed - 1
    _move_ends(net, st, v, old, new)


@njit(cache=True)
@no_type_check
def _move_ends(net: Network, st: State, v: int, old: int, new: int) -> None:
    a, b, c, d = lowest(old), highest(old), lowest(new), highest(new)
    if a == c and b == d:
        return
    st.lows[a] -= 1
    st.lows[c] += 1
    st.span[a, b] -= 1
    st.span[c, d] += 1
    if net.weight[v] > 0:
        st.low_weight[a] -= net.weight[v]
        st.low_weight[c] += net.weight[v]
        st.high_weight[b] -= net.weight[v]
        st.high_weight[d] += net.weight[v]


@njit(cache=True)
@no_type_check
def shrink(net: Network, st: State, v: int, allowed: int, rule: int) -> int:
    """Intersect a domain; return OK, or ``rule`` when nothing is left."""
    old = st.domain[v]
    new = old & allowed
    if new == old:
        return OK
    if new == 0:
        return clash(st, rule, v)
    top = st.cursor[TRAIL]
    st.trail_block[top] = v
    st.trail_domain[top] = old
    st.cursor[TRAIL] = top + 1
    _move(net, st, v, old, new)
    st.domain[v] = new
    enqueue(st, v)
    return OK


@njit(cache=True)
@no_type_check
def undo(net: Network, st: State, trail: int, done: int, relations: int) -> None:
    """Return to the trail lengths that `mark` gave; empties the queue."""
    while st.cursor[DONE] > done:
        st.cursor[DONE] -= 1
        _unplace(net, st, st.done_list[st.cursor[DONE]])
    while st.cursor[TRAIL] > trail:
        st.cursor[TRAIL] -= 1
        top = st.cursor[TRAIL]
        v, old = st.trail_block[top], st.trail_domain[top]
        _widen(net, st, v, st.domain[v], old)
        st.domain[v] = old
    if st.cursor[RELATIONS] > relations:
        st.relation[:] = st.relation_trail[relations]
        st.cursor[RELATIONS] = relations
    while st.cursor[SIZE] > 0:
        st.queued[st.queue[st.cursor[HEAD]]] = False
        st.cursor[HEAD] = (st.cursor[HEAD] + 1) % len(st.queue)
        st.cursor[SIZE] -= 1


@njit(cache=True)
@no_type_check
def _widen(net: Network, st: State, v: int, now: int, old: int) -> None:
    """Update the counters for a domain that returns from ``now`` to ``old``."""
    added = old & ~now
    while added:
        st.count[lowest(added)] += 1
        added &= added - 1
    _move_ends(net, st, v, now, old)


@njit(cache=True)
@no_type_check
def _place(net: Network, st: State, v: int) -> int:
    """A block has one chip left: charge its weights, add its edges to the chip graph."""
    c = lowest(st.domain[v])
    st.done[v] = True
    st.done_list[st.cursor[DONE]] = v
    st.cursor[DONE] += 1
    st.placed[c] += 1
    st.span[c, c] -= 1
    if net.memory:
        st.low_weight[c] -= net.weight[v]
        st.high_weight[c] -= net.weight[v]
        st.free[c] -= net.weight[v]
        for i in range(net.group_ptr[v], net.group_ptr[v + 1]):
            g = net.group[i]
            st.paid[i] = st.holds[g] & bit(c) == 0
            if st.paid[i]:
                st.holds[g] |= bit(c)
                st.free[c] -= net.group_bytes[g]
        if st.free[c] < 0:
            return clash(st, MEMORY, v)
        rule = _drop_heavy(net, st, c)
        if rule != OK:
            return rule
    if net.triangle:
        return _join(net, st, v, c)
    return OK


@njit(cache=True)
@no_type_check
def _unplace(net: Network, st: State, v: int) -> None:
    c = lowest(st.domain[v])
    st.done[v] = False
    st.placed[c] -= 1
    st.span[c, c] += 1
    if net.memory:
        st.low_weight[c] += net.weight[v]
        st.high_weight[c] += net.weight[v]
        st.free[c] += net.weight[v]
        for i in range(net.group_ptr[v], net.group_ptr[v + 1]):
            if st.paid[i]:
                st.paid[i] = False
                st.holds[net.group[i]] &= ~bit(c)
                st.free[c] += net.group_bytes[net.group[i]]


@njit(cache=True)
@no_type_check
def _drop_heavy(net: Network, st: State, c: int) -> int:
    """Blocks whose own weights no longer fit chip ``c`` lose it."""
    for i in range(len(net.heavy)):
        w = net.heavy[i]
        if net.weight[w] <= st.free[c]:
            break
        if not st.done[w] and st.domain[w] & bit(c):
            rule = shrink(net, st, w, ~bit(c), MEMORY)
            if rule != OK:
                return rule
    return OK


@njit(cache=True)
@no_type_check
def _join(net: Network, st: State, v: int, c: int) -> int:
    """Add the chip edges between ``v`` and its placed neighbours; filter the others."""
    direct = st.relation[0]
    for i in range(net.pred_ptr[v], net.pred_ptr[v + 1]):
        u = net.pred[i]
        if st.done[u]:
            a = lowest(st.domain[u])
            if a != c and direct[a] & bit(c) == 0:
                rule = _add_chip_edge(net, st, a, c, v)
                if rule != OK:
                    return rule
    for i in range(net.succ_ptr[v], net.succ_ptr[v + 1]):
        w = net.succ[i]
        if st.done[w]:
            e = lowest(st.domain[w])
            if e != c and direct[c] & bit(e) == 0:
                rule = _add_chip_edge(net, st, c, e, v)
                if rule != OK:
                    return rule
    return filter_neighbours(net, st, v)


@njit(cache=True)
@no_type_check
def filter_neighbours(net: Network, st: State, v: int) -> int:
    """Take from the neighbours of a placed block the chips that would close a triangle."""
    domain, c = st.domain, lowest(st.domain[v])
    outward, inward = st.relation[3, c], st.relation[4, c]
    for i in range(net.succ_ptr[v], net.succ_ptr[v + 1]):
        w = net.succ[i]
        if domain[w] & outward:
            rule = shrink(net, st, w, ~outward, TRIANGLE)
            if rule != OK:
                return rule
    for i in range(net.pred_ptr[v], net.pred_ptr[v + 1]):
        u = net.pred[i]
        if domain[u] & inward:
            rule = shrink(net, st, u, ~inward, TRIANGLE)
            if rule != OK:
                return rule
    return OK


@njit(cache=True)
@no_type_check
def _add_chip_edge(net: Network, st: State, a: int, c: int, v: int) -> int:
    """Add a -> c to the chip graph, unless it closes a triangle, and filter all placed blocks."""
    if st.relation[3, a] & bit(c):
        return clash(st, TRIANGLE, v)
    st.relation_trail[st.cursor[RELATIONS]] = st.relation
    st.cursor[RELATIONS] += 1
    before = st.relation_trail[st.cursor[RELATIONS] - 1]
    add_relation(st.relation, a, c)
    done_list, domain = st.done_list, st.domain
    outward, inward = st.relation[3] & ~before[3], st.relation[4] & ~before[4]
    for i in range(st.cursor[DONE]):
        w = done_list[i]
        e = lowest(domain[w])
        if (outward[e] | inward[e]) and _touches(net, domain, w, outward[e], inward[e]):
            rule = filter_neighbours(net, st, w)
            if rule != OK:
                return rule
    return OK


@njit(cache=True)
@no_type_check
def _touches(net: Network, domain, v: int, outward: int, inward: int) -> bool:
    for i in range(net.succ_ptr[v], net.succ_ptr[v + 1]):
        if domain[net.succ[i]] & outward:
            return True
    for i in range(net.pred_ptr[v], net.pred_ptr[v + 1]):
        if domain[net.pred[i]] & inward:
            return True
    return False


@njit(cache=True)
@no_type_check
def add_relation(relation, a: int, c: int) -> None:
    """Insert chip edge a -> c and bring descendants, ancestors and forbidden pairs up to date.

    A new edge x -> y is forbidden when a longer path x ~> y exists, or when it would complete a
    longer path beside an edge that exists.
    """
    chips = relation.shape[1]
    direct, below, above = relation[0], relation[1], relation[2]
    direct[a] |= bit(c)
    down, up = below[c] | bit(c), above[a] | bit(a)
    for x in range(chips):
        if up & bit(x):
            below[x] |= down
        if down & bit(x):
            above[x] |= up
    relation[4, :] = 0
    for x in range(chips):
        forbidden = 0 * direct[x]
        sources = above[x] | bit(x)
        for s in range(x + 1):
            if sources & bit(s) == 0:
                continue
            targets = direct[s]
            while targets:
                y = lowest(targets)
                targets &= targets - 1
                forbidden |= above[y]
                if s != x:
                    forbidden |= bit(y)
                else:
                    forbidden |= below[y]
        relation[3, x] = forbidden & ~up_to(x)
        for y in range(x + 1, chips):
            if relation[3, x] & bit(y):
                relation[4, y] |= bit(x)


@njit(cache=True)
@no_type_check
def propagate(net: Network, st: State) -> int:
    """Run all rules to their fixed point; return OK or the rule that clashed."""
    while True:
        while st.cursor[SIZE] > 0:
            v = st.queue[st.cursor[HEAD]]
            st.cursor[HEAD] = (st.cursor[HEAD] + 1) % len(st.queue)
            st.cursor[SIZE] -= 1
            st.queued[v] = False
            rule = _revise(net, st, v)
            if rule != OK:
                return rule
        rule = _check_no_skip(net, st)
        if rule != OK:
            return rule
        if st.cursor[SIZE] > 0:
            continue
        if net.memory:
            return _check_memory(net, st)
        return OK


@njit(cache=True)
@no_type_check
def _revise(net: Network, st: State, v: int) -> int:
    domain, triple = st.domain, net.triple
    d = domain[v]
    too_low, too_high = bit(lowest(d)) - 1, ~up_to(highest(d))
    for i in range(net.succ_ptr[v], net.succ_ptr[v + 1]):
        w = net.succ[i]
        if domain[w] & too_low:
            rule = shrink(net, st, w, ~too_low, ORDER)
            if rule != OK:
                return rule
    for i in range(net.pred_ptr[v], net.pred_ptr[v + 1]):
        u = net.pred[i]
        if domain[u] & too_high:
            rule = shrink(net, st, u, ~too_high, ORDER)
            if rule != OK:
                return rule
    for i in range(net.triple_ptr[v], net.triple_ptr[v + 1]):
        t = net.triple_of[i]
        du, dw, dv = domain[triple[t, 0]], domain[triple[t, 1]], domain[triple[t, 2]]
        if dw & ~(du | dv) or (dw & du == 0 and dw != dv) or (dw & dv == 0 and dw != du):
            rule = _between(net, st, t)
            if rule != OK:
                return rule
    d = domain[v]
    if d & (d - 1) == 0 and not st.done[v]:
        return _place(net, st, v)
    return OK


@njit(cache=True)
@no_type_check
def _between(net: Network, st: State, t: int) -> int:
    """f(w) is f(u) or f(v)."""
    u, w, v = net.triple[t, 0], net.triple[t, 1], net.triple[t, 2]
    du, dw, dv = st.domain[u], st.domain[w], st.domain[v]
    if dw & ~(du | dv):
        rule = shrink(net, st, w, du | dv, BETWEEN)
        if rule != OK:
            return rule
        dw = st.domain[w]
    if dw & du == 0 and dw != dv:
        rule = shrink(net, st, w, dv, BETWEEN)
        if rule != OK:
            return rule
        return shrink(net, st, v, dw, BETWEEN)
    if dw & dv == 0 and dw != du:
        rule = shrink(net, st, w, du, BETWEEN)
        if rule != OK:
            return rule
        return shrink(net, st, u, dw, BETWEEN)
    return OK


@njit(cache=True)
@no_type_check
def _check_no_skip(net: Network, st: State) -> int:
    """Chips up to the largest that some block must reach are all used."""
    top = net.chips - 1
    if not net.all_chips:
        while top > 0 and st.lows[top] == 0:
            top -= 1
    gaps = 0
    for c in range(top + 1):
        if st.count[c] == 0:
            gaps += 1
            if gaps > net.spare:
                return clash(st, NO_SKIP, -1 - c)
        elif st.count[c] == 1 and st.placed[c] == 0 and net.spare == 0:
            rule = _force_only(net, st, c)
            if rule != OK:
                return rule
    if net.spare > 0:
        return OK
    for c in range(top + 1, net.chips):
        if st.count[c] == 0:
            rule = _cut_above(net, st, c)
            if rule != OK:
                return rule
            break
    return _check_fillers(net, st, top)


@njit(cache=True)
@no_type_check
def _check_fillers(net: Network, st: State, top: int) -> int:
    """Every unused chip up to ``top`` finds a block of its own (earliest-deadline matching of
    chips to intervals, as in Glover 1967)."""
    last = top
    while last >= 0 and st.placed[last] > 0:
        last -= 1
    if last < 0:
        return OK
    ready = np.zeros(net.chips, np.int64)
    for c in range(last + 1):
        for e in range(c, net.chips):
            ready[e] += st.span[c, e]
        if st.placed[c] > 0:
            continue
        e = c
        while e < net.chips and ready[e] == 0:
            e += 1
        if e == net.chips:
            return clash(st, NO_SKIP, -1 - c)
        ready[e] -= 1
    return OK


@njit(cache=True)
@no_type_check
def limit_reach(net: Network, st: State, v: int, ahead: int) -> int:
    """Shrink the domain of ``v`` to chips whose lower neighbours others can still fill.

    All blocks before ``v`` in topological order must be placed; ``ahead`` blocks behind it are.
    Chips below f(v) that are unused can only be filled by blocks that ``v`` does not reach.
    """
    if net.spare > 0:
        return OK
    fillers = len(st.domain) - st.cursor[DONE] - (net.after[v] - ahead)
    top = highest(st.domain[v])
    for c in range(top):
        if st.placed[c] == 0:
            fillers -= 1
            if fillers < 0:
                return shrink(net, st, v, up_to(c), NO_SKIP)
    return OK


@njit(cache=True)
@no_type_check
def _force_only(net: Network, st: State, c: int) -> int:
    for v in range(len(st.domain)):
        if st.domain[v] & bit(c):
            return shrink(net, st, v, bit(c), NO_SKIP)
    return OK


@njit(cache=True)
@no_type_check
def _cut_above(net: Network, st: State, c: int) -> int:
    """Nobody can use chip ``c``: nobody may use a higher one."""
    above = False
    for e in range(c + 1, net.chips):
        above |= st.count[e] > 0
    if above:
        for v in range(len(st.domain)):
            rule = shrink(net, st, v, up_to(c), NO_SKIP)
            if rule != OK:
                return rule
    return OK


@njit(cache=True)
@no_type_check
def _check_memory(net: Network, st: State) -> int:
    """Weights that must go to chips c.. (or ..c) fit what is free there."""
    need, room = 0, 0
    for c in range(net.chips - 1, -1, -1):
        need += st.low_weight[c]
        room += st.free[c]
        if need > room:
            return clash(st, MEMORY, -1 - c)
    need, room = 0, 0
    for c in range(net.chips):
        need += st.high_weight[c]
        room += st.free[c]
        if need > room:
            return clash(st, MEMORY, -1 - c)
    return OK
