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


@njit(cache=True, error_model="numpy")
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


@njit(cache=True, error_model="numpy")
@no_type_check
def clash(st: State, rule: int, v: int) -> int:
    """Remember which rule clashed at which block, and return the rule."""
    st.cursor[CLASH_RULE] = rule
    st.cursor[CLASH_BLOCK] = v
    return rule


@njit(cache=True, error_model="numpy")
@no_type_check
def shrink(net: Network, st: State, v: int, allowed: int, rule: int) -> int:
    """Intersect a domain; return OK, or ``rule`` when nothing is left."""
    if st.domain[v] & allowed == 0:
        return clash(st, rule, v)
    if st.domain[v] & ~allowed:
        _narrow(
            st.domain, st.trail_block, st.trail_domain, st.cursor, st.queue, st.queued, v, allowed
        )
        _account(st.count, st.lows, st.span, st.trail_domain[st.cursor[TRAIL] - 1], st.domain[v])
        if net.weight[v] > 0:
            old, new = st.trail_domain[st.cursor[TRAIL] - 1], st.domain[v]
            _weigh(st.low_weight, st.high_weight, net.weight[v], old, new)
    return OK


# Arrays are handed to the next three one by one: reading them out of the state costs a reference
# count each, which made a change of one domain ten times as slow.


@njit(cache=True, error_model="numpy")
@no_type_check
def _narrow(domain, trail_block, trail_domain, cursor, queue, queued, v: int, allowed: int) -> None:
    """Shrink a domain, remember the old one and queue the block."""
    top = cursor[TRAIL]
    trail_block[top] = v
    trail_domain[top] = domain[v]
    cursor[TRAIL] = top + 1
    domain[v] &= allowed
    if not queued[v]:
        queued[v] = True
        tail = cursor[HEAD] + cursor[SIZE]
        queue[tail if tail < len(queue) else tail - len(queue)] = v
        cursor[SIZE] += 1


@njit(cache=True, error_model="numpy")
@no_type_check
def _account(count, lows, span, old: int, new: int) -> None:
    """Update the counters for a domain that changes from ``old`` to ``new``, either way."""
    changed = old ^ new
    step = -1 if old & ~new else 1
    while changed:
        count[lowest(changed)] += step
        changed &= changed - 1
    a, b, c, d = lowest(old), highest(old), lowest(new), highest(new)
    lows[a] -= 1
    lows[c] += 1
    span[a, b] -= 1
    span[c, d] += 1


@njit(cache=True, error_model="numpy")
@no_type_check
def _weigh(low_weight, high_weight, weight: int, old: int, new: int) -> None:
    """Move a block's weight between the sums by smallest and by largest chip."""
    low_weight[lowest(old)] -= weight
    low_weight[lowest(new)] += weight
    high_weight[highest(old)] -= weight
    high_weight[highest(new)] += weight


@njit(cache=True, error_model="numpy")
@no_type_check
def undo(net: Network, st: State, trail: int, done: int, relations: int) -> None:
    """Return to earlier lengths of the trails; empties the queue."""
    while st.cursor[DONE] > done:
        st.cursor[DONE] -= 1
        _unplace(net, st, st.done_list[st.cursor[DONE]])
    domain, cursor, queue, queued = st.domain, st.cursor, st.queue, st.queued
    trail_block, trail_domain, weight = st.trail_block, st.trail_domain, net.weight
    count, lows, span = st.count, st.lows, st.span
    low_weight, high_weight = st.low_weight, st.high_weight
    while cursor[TRAIL] > trail:
        cursor[TRAIL] -= 1
        v, old = trail_block[cursor[TRAIL]], trail_domain[cursor[TRAIL]]
        _account(count, lows, span, domain[v], old)
        if weight[v] > 0:
            _weigh(low_weight, high_weight, weight[v], domain[v], old)
        domain[v] = old
    if cursor[RELATIONS] > relations:
        st.relation[:] = st.relation_trail[relations]
        cursor[RELATIONS] = relations
    while cursor[SIZE] > 0:
        queued[queue[cursor[HEAD]]] = False
        cursor[HEAD] = cursor[HEAD] + 1 if cursor[HEAD] + 1 < len(queue) else 0
        cursor[SIZE] -= 1


@njit(cache=True, error_model="numpy")
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


@njit(cache=True, error_model="numpy")
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


@njit(cache=True, error_model="numpy")
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


@njit(cache=True, error_model="numpy")
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


@njit(cache=True, error_model="numpy")
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


@njit(cache=True, error_model="numpy")
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


@njit(cache=True, error_model="numpy")
@no_type_check
def _touches(net: Network, domain, v: int, outward: int, inward: int) -> bool:
    for i in range(net.succ_ptr[v], net.succ_ptr[v + 1]):
        if domain[net.succ[i]] & outward:
            return True
    for i in range(net.pred_ptr[v], net.pred_ptr[v + 1]):
        if domain[net.pred[i]] & inward:
            return True
    return False


@njit(cache=True, error_model="numpy")
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


@njit(cache=True, error_model="numpy")
@no_type_check
def propagate(net: Network, st: State) -> int:
    """Run all rules to their fixed point; return OK or the rule that clashed."""
    while True:
        rule = _drain(net, st)
        if rule == OK:
            rule = _check_no_skip(net, st)
        if rule != OK:
            return rule
        if st.cursor[SIZE] > 0:
            continue
        if net.memory:
            return _check_memory(net, st)
        return OK


@njit(cache=True, error_model="numpy")
@no_type_check
def _drain(net: Network, st: State) -> int:
    """Revise queued blocks until none waits: order, between, and placing blocks with one chip."""
    domain, cursor, queue, queued, done = st.domain, st.cursor, st.queue, st.queued, st.done
    trail_block, trail_domain, weight = st.trail_block, st.trail_domain, net.weight
    count, lows, span = st.count, st.lows, st.span
    low_weight, high_weight = st.low_weight, st.high_weight
    pred_ptr, pred, succ_ptr, succ = net.pred_ptr, net.pred, net.succ_ptr, net.succ
    triple, triple_ptr, triple_of = net.triple, net.triple_ptr, net.triple_of
    while cursor[SIZE] > 0:
        v = queue[cursor[HEAD]]
        cursor[HEAD] = cursor[HEAD] + 1 if cursor[HEAD] + 1 < len(queue) else 0
        cursor[SIZE] -= 1
        queued[v] = False
        too_low, too_high = bit(lowest(domain[v])) - 1, ~up_to(highest(domain[v]))
        for side in range(2):
            ptr, ids, out = succ_ptr, succ, too_low
            if side == 1:
                ptr, ids, out = pred_ptr, pred, too_high
            for i in range(ptr[v], ptr[v + 1]):
                w = ids[i]
                if domain[w] & out == 0:
                    continue
                if domain[w] & ~out == 0:
                    return clash(st, ORDER, w)
                _narrow(domain, trail_block, trail_domain, cursor, queue, queued, w, ~out)
                old, new = trail_domain[cursor[TRAIL] - 1], domain[w]
                _account(count, lows, span, old, new)
                if weight[w] > 0:
                    _weigh(low_weight, high_weight, weight[w], old, new)
        for i in range(triple_ptr[v], triple_ptr[v + 1]):
            t = triple_of[i]
            du, dw, dv = domain[triple[t, 0]], domain[triple[t, 1]], domain[triple[t, 2]]
            if dw & ~(du | dv) or (dw & du == 0 and dw != dv) or (dw & dv == 0 and dw != du):
                rule = _between(net, st, t)
                if rule != OK:
                    return rule
        if domain[v] & (domain[v] - 1) == 0 and not done[v]:
            rule = _place(net, st, v)
            if rule != OK:
                return rule
    return OK


@njit(cache=True, error_model="numpy")
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


@njit(cache=True, error_model="numpy")
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


@njit(cache=True, error_model="numpy")
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


@njit(cache=True, error_model="numpy")
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


@njit(cache=True, error_model="numpy")
@no_type_check
def _force_only(net: Network, st: State, c: int) -> int:
    for v in range(len(st.domain)):
        if st.domain[v] & bit(c):
            return shrink(net, st, v, bit(c), NO_SKIP)
    return OK


@njit(cache=True, error_model="numpy")
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


@njit(cache=True, error_model="numpy")
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
