"""Constraint propagation over chip domains: every function removes only values no solution uses.

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

from go_rl.core.bitset import bit, highest, lowest, membership, up_to
from go_rl.core.compiled_struct import compiled
from go_rl.solvers.chip_counts import check_memory, check_no_skip, drop_heavy
from go_rl.solvers.chip_graph import copy_relation, join_chips
from go_rl.solvers.domains import (
    BETWEEN,
    CLASH_BLOCK,
    CLASH_RULE,
    DONE,
    HEAD,
    MEMORY,
    NO_SKIP,
    OK,
    ORDER,
    RELATIONS,
    SIZE,
    TRAIL,
    account,
    clash,
    narrow,
    shrink,
    weigh,
)
from go_rl.solvers.network import Network, State


def fill(net: Network, st: State) -> int:
    """Give a state the initial domains with all blocks queued; return OK, or the clash of an empty
    one."""
    for array in (st.cursor, st.count, st.placed, st.lows, st.span, st.low_weight, st.high_weight,
                  st.holds, st.done, st.relation):  # fmt: skip
        array[...] = 0
    blocks = len(net.start)
    st.domain[:], st.free[:] = net.start, net.capacity
    st.queue[:], st.queued[:] = np.arange(blocks), True
    empty = np.flatnonzero(net.start == 0)
    if empty.size:
        st.cursor[CLASH_RULE] = MEMORY if net.memory else NO_SKIP
        st.cursor[CLASH_BLOCK] = empty[0]
        return int(st.cursor[CLASH_RULE])
    held = membership(net.start, net.chips)
    low, high = held.argmax(axis=1), net.chips - 1 - held[:, ::-1].argmax(axis=1)
    st.count[:] = held.sum(axis=0)
    np.add.at(st.lows, low, 1)
    np.add.at(st.span, (low, high), 1)
    np.add.at(st.low_weight, low, net.weight)
    np.add.at(st.high_weight, high, net.weight)
    st.cursor[SIZE] = blocks
    return int(OK)


def reset(net: Network, st: State) -> int:
    """Fill a state and propagate; return OK or the clash."""
    return fill(net, st) or int(propagate(net, st))


@compiled
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
        account(count, lows, span, domain[v], old)
        if weight[v] > 0:
            weigh(low_weight, high_weight, weight[v], domain[v], old)
        domain[v] = old
    if cursor[RELATIONS] > relations:
        copy_relation(st.relation_trail[relations], st.relation)
        cursor[RELATIONS] = relations
    while cursor[SIZE] > 0:
        queued[queue[cursor[HEAD]]] = False
        cursor[HEAD] = cursor[HEAD] + 1 if cursor[HEAD] + 1 < len(queue) else 0
        cursor[SIZE] -= 1


@compiled
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
        rule = drop_heavy(net, st, c)
        if rule != OK:
            return rule
    if net.triangle:
        return join_chips(net, st, v, c)
    return OK


@compiled
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


@compiled
@no_type_check
def propagate(net: Network, st: State) -> int:
    """Run all rules to their fixed point; return OK or the rule that clashed."""
    while True:
        rule = _drain(net, st)
        if rule == OK:
            rule = check_no_skip(net, st)
        if rule != OK:
            return rule
        if st.cursor[SIZE] > 0:
            continue
        if net.memory:
            return check_memory(net, st)
        return OK


@compiled
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
        # Take the next block off the circular queue.
        v = queue[cursor[HEAD]]
        cursor[HEAD] = cursor[HEAD] + 1 if cursor[HEAD] + 1 < len(queue) else 0
        cursor[SIZE] -= 1
        queued[v] = False
        # Order: f(u) <= f(v) for u -> v removes chips below min D(v) from successors, and chips
        # above max D(v) from predecessors.
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
                narrow(domain, trail_block, trail_domain, cursor, queue, queued, w, ~out)
                old, new = trail_domain[cursor[TRAIL] - 1], domain[w]
                account(count, lows, span, old, new)
                if weight[w] > 0:
                    weigh(low_weight, high_weight, weight[w], old, new)
        # Between: f(w) is f(u) or f(v), tested here and revised only where it prunes.
        for i in range(triple_ptr[v], triple_ptr[v + 1]):
            t = triple_of[i]
            du, dw, dv = domain[triple[t, 0]], domain[triple[t, 1]], domain[triple[t, 2]]
            if dw & ~(du | dv) or (dw & du == 0 and dw != dv) or (dw & dv == 0 and dw != du):
                rule = _between(net, st, t)
                if rule != OK:
                    return rule
        # One chip left (a power of two): v is placed.
        if domain[v] & (domain[v] - 1) == 0 and not done[v]:
            rule = _place(net, st, v)
            if rule != OK:
                return rule
    return OK


@compiled
@no_type_check
def _between(net: Network, st: State, t: int) -> int:
    """Rule of consecutive chips: f(w) is f(u) or f(v)."""
    u, w, v = net.triple[t, 0], net.triple[t, 1], net.triple[t, 2]
    du, dw, dv = st.domain[u], st.domain[w], st.domain[v]
    # D(w) is within D(u) | D(v).
    if dw & ~(du | dv):
        rule = shrink(net, st, w, du | dv, BETWEEN)
        if rule != OK:
            return rule
        dw = st.domain[w]
    # f(w) != f(u) for certain, so f(w) = f(v): both keep the common chips only.
    if dw & du == 0 and dw != dv:
        rule = shrink(net, st, w, dv, BETWEEN)
        if rule != OK:
            return rule
        return shrink(net, st, v, dw, BETWEEN)
    # The same with u and v exchanged.
    if dw & dv == 0 and dw != du:
        rule = shrink(net, st, w, du, BETWEEN)
        if rule != OK:
            return rule
        return shrink(net, st, u, dw, BETWEEN)
    return OK
