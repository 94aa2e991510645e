"""The rules that count: no chip is skipped, and weights fit."""

from __future__ import annotations

from typing import no_type_check

from go_rl.core.bitset import bit, highest, up_to
from go_rl.core.compiled_struct import compiled
from go_rl.solvers.domains import DONE, MEMORY, NO_SKIP, OK, clash, shrink
from go_rl.solvers.network import Network, State


@compiled
@no_type_check
def check_no_skip(net: Network, st: State) -> int:
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


@compiled
@no_type_check
def _check_fillers(net: Network, st: State, top: int) -> int:
    """Every unused chip up to ``top`` finds a block of its own (earliest-deadline matching of
    chips to intervals, as in Glover 1967)."""
    last = top
    while last >= 0 and st.placed[last] > 0:
        last -= 1
    if last < 0:
        return OK
    ready = st.ready
    for c in range(net.chips):
        ready[c] = 0
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


@compiled
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


@compiled
@no_type_check
def _force_only(net: Network, st: State, c: int) -> int:
    for v in range(len(st.domain)):
        if st.domain[v] & bit(c):
            return shrink(net, st, v, bit(c), NO_SKIP)
    return OK


@compiled
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


@compiled
@no_type_check
def drop_heavy(net: Network, st: State, c: int) -> int:
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


@compiled
@no_type_check
def check_memory(net: Network, st: State) -> int:
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
