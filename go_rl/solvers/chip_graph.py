"""The triangle rule: the graph of chips that placed blocks have joined, and what it forbids."""

from __future__ import annotations

from typing import no_type_check

from go_rl.core.bitset import bit, lowest, up_to
from go_rl.core.compiled_struct import compiled
from go_rl.solvers.domains import DONE, OK, RELATIONS, TRIANGLE, clash, shrink
from go_rl.solvers.network import Network, State


@compiled
@no_type_check
def join_chips(net: Network, st: State, v: int, c: int) -> int:
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


@compiled
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


@compiled
@no_type_check
def _add_chip_edge(net: Network, st: State, a: int, c: int, v: int) -> int:
    """Add a -> c to the chip graph, unless it closes a triangle, and filter all placed blocks."""
    if st.relation[3, a] & bit(c):
        return clash(st, TRIANGLE, v)
    relation, before = st.relation, st.relation_trail[st.cursor[RELATIONS]]
    copy_relation(relation, before)
    st.cursor[RELATIONS] += 1
    add_relation(relation, a, c)
    done_list, domain = st.done_list, st.domain
    for i in range(st.cursor[DONE]):
        w = done_list[i]
        e = lowest(domain[w])
        outward = relation[3, e] & ~before[3, e]
        inward = relation[4, e] & ~before[4, e]
        if (outward | inward) and _touches(net, domain, w, outward, inward):
            rule = filter_neighbours(net, st, w)
            if rule != OK:
                return rule
    return OK


@compiled
@no_type_check
def _touches(net: Network, domain, v: int, outward: int, inward: int) -> bool:
    for i in range(net.succ_ptr[v], net.succ_ptr[v + 1]):
        if domain[net.succ[i]] & outward:
            return True
    for i in range(net.pred_ptr[v], net.pred_ptr[v + 1]):
        if domain[net.pred[i]] & inward:
            return True
    return False


@compiled
@no_type_check
def copy_relation(source, target) -> None:
    for i in range(source.shape[0]):
        for c in range(source.shape[1]):
            target[i, c] = source[i, c]


@compiled
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
    for x in range(chips):
        relation[4, x] = 0
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
