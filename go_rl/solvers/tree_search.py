"""Depth-first search over blocks: FIX and SAMPLE with chronological backtracking.

SAMPLE: blocks in order, each drawn from the policy's distribution renormalised over its current
domain. FIX: the policy's proposal is taken block by block where it is still legal, then the rest
are sampled (Partitioning ML Models on Multi-Chip Modules, MLSys 2022).
"""

from __future__ import annotations

from typing import no_type_check

import numpy as np

from go_rl.core.bitset import bit, lowest, up_to
from go_rl.core.compiled_struct import compiled
from go_rl.solvers.chip_counts import limit_reach
from go_rl.solvers.domains import DONE, NO_SKIP, OK, RELATIONS, TRAIL, shrink
from go_rl.solvers.network import Network, State
from go_rl.solvers.propagation import propagate, undo

FOUND, EXHAUSTED, STOPPED = 0, 1, 2
"""Outcomes of a search: a partition, a proof that none exists, too many failures."""

NO_PROPOSAL = np.int64(-1)


@compiled
@no_type_check
def next_uniform(random) -> float:
    """Return a float in [0, 1) and advance ``random`` [1] uint64 (SplitMix64)."""
    random[0] += np.uint64(0x9E3779B97F4A7C15)
    z = random[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return (z >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@compiled
@no_type_check
def draw(log_probs, domain: int, random) -> int:
    """Draw a chip of ``domain`` from [k] log-probabilities renormalised over it.

    Where all of them are -inf the draw is uniform.
    """
    top = -np.inf
    members = domain
    while members:
        top = max(top, log_probs[lowest(members)])
        members &= members - 1
    total = 0.0
    members = domain
    while members:
        total += np.exp(log_probs[lowest(members)] - top) if top > -np.inf else 1.0
        members &= members - 1
    at = next_uniform(random) * total
    members = domain
    chosen = lowest(domain)
    while members:
        c = lowest(members)
        share = np.exp(log_probs[c] - top) if top > -np.inf else 1.0
        members &= members - 1
        if share > 0.0:
            chosen = c
            at -= share
            if at < 0.0:
                break
    return chosen


@compiled
@no_type_check
def _first_unused(st: State) -> int:
    c = 0
    while c < len(st.placed) and st.placed[c] > 0:
        c += 1
    return c


@compiled
@no_type_check
def _any_proposed(proposal) -> bool:
    for v in range(len(proposal)):
        if proposal[v] != NO_PROPOSAL:
            return True
    return False


@compiled
@no_type_check
def search(net: Network, st: State, log_probs, proposal, order, effort, random, partition) -> int:
    """Look for a complete partition; the state is left at its root fixed point.

    Args:
        net, st: the problem and a state that was filled or searched before.
        log_probs: [M, k].
        proposal: [M] chips for FIX, or `NO_PROPOSAL`.
        order: [M] blocks in the order of drawing; empty: only bring the root to its fixed point.
        effort: contradictions after which to stop; whether to open chips one after another, never
            leaving a gap to be filled later.
        random: [1] uint64.
        partition: two arrays [M] that FOUND fills: the chips, and the domain of each block when it
            was drawn.

    Returns:
        FOUND, EXHAUSTED or STOPPED.
    """
    if propagate(net, st) != OK:
        return EXHAUSTED
    trail, done, relations = st.cursor[TRAIL], st.cursor[DONE], st.cursor[RELATIONS]
    verdict, depth = _descend(net, st, log_probs, proposal, order, effort, random, st.levels)
    if verdict == FOUND:
        _read_out(st, depth, partition)
    undo(net, st, trail, done, relations)
    return verdict


@compiled
@no_type_check
def _read_out(st: State, depth: int, partition) -> None:
    chip, mask = partition
    domain, levels = st.domain, st.levels
    for v in range(len(chip)):
        chip[v] = lowest(domain[v])
        mask[v] = domain[v]
    for i in range(depth):
        mask[levels[i, 0]] = levels[i, 2]


@compiled
@no_type_check
def _descend(net: Network, st: State, log_probs, proposal, order, effort, random, levels):
    """Extend the state to a complete partition; return the verdict and the depth.

    State, over ``M`` blocks:

    - ``levels`` [M + 1, 6]: block, chip, domain before, and the lengths of trail, done list and
      relations before, for each decision;
    - ``depth``: decisions in force; ``failures``: refuted so far;
    - ``at``: position in two passes over ``order``; ``resume``: where to go on after backtracking.
    """
    max_failures, tight = effort
    blocks = len(order)
    depth, failures = 0, 0
    at = 0 if _any_proposed(proposal) else blocks
    # Positions below ``blocks`` FIX proposed chips; those above SAMPLE what is still open.
    while at < 2 * blocks:
        fixing = at < blocks
        v = order[at if fixing else at - blocks]
        domain = st.domain[v]
        if st.done[v] or (fixing and (proposal[v] < 0 or domain & bit(proposal[v]) == 0)):
            at += 1
            continue
        if not fixing and order[at - blocks] == at - blocks:
            limit_reach(net, st, v, st.cursor[DONE] - v)
            if tight:
                shrink(net, st, v, up_to(_first_unused(st)), NO_SKIP)
            domain = st.domain[v]
        # Decide f(v) = c; the level remembers what undoes it.
        c = proposal[v] if fixing else draw(log_probs[v], domain, random)
        row = levels[depth]
        row[0], row[1], row[2] = v, c, domain
        row[3], row[4], row[5] = st.cursor[TRAIL], st.cursor[DONE], st.cursor[RELATIONS]
        depth += 1
        resume = at
        # Propagate the decision.
        shrink(net, st, v, bit(c), NO_SKIP)
        rule = propagate(net, st)
        at += 1
        # Backtrack: take back the last decision, so f(v) != c; if that fails too, the one before.
        while rule != OK:
            failures += 1
            if depth == 0:
                return EXHAUSTED, failures
            depth -= 1
            row = levels[depth]
            undo(net, st, row[3], row[4], row[5])
            if failures > max_failures:
                return STOPPED, failures
            rule = shrink(net, st, row[0], ~bit(row[1]), NO_SKIP)
            if rule == OK:
                rule = propagate(net, st)
            else:
                undo(net, st, row[3], row[4], row[5])
            at = min(at, resume)
            resume = blocks if at >= blocks else 0
    return FOUND, depth
