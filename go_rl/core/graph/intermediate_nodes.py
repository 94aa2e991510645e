"""The nodes that an edge forces: under the triangle rule, a node on another path from u to v, where
u -> v is an edge, must share a chip with u or with v.

For one u it suffices to tie each such node to the *first* targets of u that it reaches: a target
is itself tied to the targets behind it. That keeps the triples few where one tensor (a mask, an
encoder's output) feeds every layer.
"""

from __future__ import annotations

from typing import no_type_check

import numpy as np
from jaxtyping import Int32

from go_rl.core.compiled_struct import compiled

TRIPLES_PER_BLOCK = 4
"""Triples kept for each block at most, shortest spans first; leaving some out prunes less, and is
still sound because the chip graph itself is checked."""


@compiled
@no_type_check
def _triples(pred_ptr, pred, succ_ptr, succ, order, visits, scratch, out) -> int:
    """Fill rows of ``out`` with triples (u, w, v): an edge u -> v and a path u -> w -> v.

    Returns their number. State, over ``M`` blocks:

    - ``below`` [M]: the last block u that reaches this one, at first -1;
    - ``is_target`` [M]: the last block u with an edge to it, at first -1;
    - ``seen`` [M]: the last backward pass that met it, at first -1;
    - ``stack`` [M]: blocks still to be visited, the first ``top`` valid.
    """
    below, is_target, seen, stack = scratch[0], scratch[1], scratch[2], scratch[3]
    limit, found, pass_id = len(out), 0, 0
    for at in range(len(order)):
        u = order[at]
        last = succ[succ_ptr[u + 1] - 1]
        # Forwards: mark what u reaches, as far as its last successor.
        top = 0
        for i in range(succ_ptr[u], succ_ptr[u + 1]):
            is_target[succ[i]] = u
            stack[top] = succ[i]
            below[succ[i]] = u
            top += 1
        while top > 0:
            top -= 1
            x = stack[top]
            visits -= 1
            for i in range(succ_ptr[x], succ_ptr[x + 1]):
                y = succ[i]
                if y <= last and below[y] != u:
                    below[y] = u
                    stack[top] = y
                    top += 1
        # Backwards from each successor v: whatever u reaches lies between u and v. The walk stops
        # at further successors of u, whose own pass finds what is before them.
        for j in range(succ_ptr[u], succ_ptr[u + 1]):
            v = succ[j]
            pass_id += 1
            stack[0] = v
            top = 1
            while top > 0:
                top -= 1
                x = stack[top]
                visits -= 1
                for i in range(pred_ptr[x], pred_ptr[x + 1]):
                    w = pred[i]
                    if below[w] != u or seen[w] == pass_id:
                        continue
                    seen[w] = pass_id
                    if found == limit:
                        return found
                    out[found, 0], out[found, 1], out[found, 2] = u, w, v
                    found += 1
                    if is_target[w] != u:
                        stack[top] = w
                        top += 1
        if visits < 0:
            break
    return found


def intermediate_triples(
    pred_ptr: np.ndarray, pred: np.ndarray, succ_ptr: np.ndarray, succ: np.ndarray
) -> Int32[np.ndarray, "T 3"]:
    """Return [T, 3] rows (u, w, v): u -> v is an edge and w lies on another path from u to v.

    Blocks are in topological order; ``succ`` rows are ascending. Sources with the shortest spans
    come first, and the work is bounded, so a huge graph may keep only a part.
    """
    blocks = len(pred_ptr) - 1
    several = np.flatnonzero(np.diff(succ_ptr) > 1)
    if not several.size:
        return np.zeros((0, 3), np.int32)
    span = succ[succ_ptr[several + 1] - 1] - several
    order = several[np.argsort(span, kind="stable")].astype(np.int32)
    limit = TRIPLES_PER_BLOCK * blocks
    out, scratch = np.empty((limit, 3), np.int32), np.full((4, blocks), -1, np.int64)
    visits = 400 * blocks + 1_000_000
    found = _triples(pred_ptr, pred, succ_ptr, succ, order, visits, scratch, out)
    return out[:found].copy()
