"""Domains of blocks: shrinking one, with the trail that undoes it and the counters it feeds."""

from __future__ import annotations

from typing import no_type_check

import numpy as np

from go_rl.core.bitset import highest, lowest
from go_rl.core.compiled_struct import compiled
from go_rl.solvers.network import Network, State

OK, ORDER, BETWEEN, TRIANGLE, NO_SKIP, MEMORY = (np.int64(code) for code in range(6))
"""Clash codes: which rule emptied a domain. Words, since Numba compiles a function once more for
each Python integer that is handed to it as a constant."""

TRAIL, DONE, RELATIONS, HEAD, SIZE, CLASH_RULE, CLASH_BLOCK = 0, 1, 2, 3, 4, 5, 6
"""Places in `State.cursor`: trail lengths, queue head and size, the last clash."""


@compiled
@no_type_check
def clash(st: State, rule: int, v: int) -> int:
    """Remember which rule clashed at which block, and return the rule."""
    st.cursor[CLASH_RULE] = rule
    st.cursor[CLASH_BLOCK] = v
    return rule


@compiled
@no_type_check
def shrink(net: Network, st: State, v: int, allowed: int, rule: int) -> int:
    """Intersect a domain; return OK, or ``rule`` when nothing is left."""
    if st.domain[v] & allowed == 0:
        return clash(st, rule, v)
    if st.domain[v] & ~allowed:
        narrow(
            st.domain, st.trail_block, st.trail_domain, st.cursor, st.queue, st.queued, v, allowed
        )
        account(st.count, st.lows, st.span, st.trail_domain[st.cursor[TRAIL] - 1], st.domain[v])
        if net.weight[v] > 0:
            old, new = st.trail_domain[st.cursor[TRAIL] - 1], st.domain[v]
            weigh(st.low_weight, st.high_weight, net.weight[v], old, new)
    return OK


# Arrays are handed to the next three one by one: reading them out of the state costs a reference
# count each, which made a change of one domain ten times as slow.


@compiled
@no_type_check
def narrow(domain, trail_block, trail_domain, cursor, queue, queued, v: int, allowed: int) -> None:
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


@compiled
@no_type_check
def account(count, lows, span, old: int, new: int) -> None:
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


@compiled
@no_type_check
def weigh(low_weight, high_weight, weight: int, old: int, new: int) -> None:
    """Move a block's weight between the sums by smallest and by largest chip."""
    low_weight[lowest(old)] -= weight
    low_weight[lowest(new)] += weight
    high_weight[highest(old)] -= weight
    high_weight[highest(new)] += weight
