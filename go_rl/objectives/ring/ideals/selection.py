"""Selection of the states of a layer to keep: none that another beats, and the least wasteful of
the rest."""

from __future__ import annotations

from typing import no_type_check

import numpy as np

from go_rl.core.compiled_struct import compiled
from go_rl.objectives.ring.ideals.frontier import (
    CHIPS,
    CUT,
    HELD,
    HELD_B,
    KEY,
    LOAD,
    LOAD_B,
    TIE,
    TRUNCATED,
    TWO,
    WASTE,
    Frontier,
)


@compiled
@no_type_check
def select(f: Frontier, found: int, width: int) -> int:
    """Drop candidates that another with the same ideal beats; keep the ``width`` least wasteful.

    Returns how many are kept, in the front of ``order``.
    """
    ci, order, alive, sort_key = f.candidate, f.order, f.alive, f.sort_key
    for c in range(found):
        sort_key[c], order[c], alive[c] = ci[c, KEY], c, True
    _sort(sort_key, order, f.buffer, found)
    begin = 0
    while begin < found:
        end = begin + 1
        while end < found and sort_key[order[end]] == sort_key[order[begin]]:
            end += 1
        for i in range(begin, end):
            if not alive[order[i]]:
                continue
            for j in range(begin, end):
                if i != j and alive[order[j]] and _beats(f, order[i], order[j]):
                    alive[order[j]] = False
        begin = end
    kept = np.int64(0)
    for c in range(found):
        if alive[c]:
            order[kept] = c
            f.worth[c] = max(f.candidate_value[c, WASTE] + TIE * f.candidate_value[c, CUT], 0.0)
            kept += 1
    if kept > width:
        _sort(sort_key, order, f.buffer, kept)
        f.cursor[TRUNCATED] = 1
        kept = width
    elif kept == width and found > width:
        f.cursor[TRUNCATED] = 1
    return kept


@compiled
@no_type_check
def _beats(f: Frontier, a: int, b: int) -> bool:
    ci, x, y = f.candidate, f.candidate_value[a], f.candidate_value[b]
    if ci[a, CHIPS] > ci[b, CHIPS] or ci[a, TWO] != ci[b, TWO]:
        return False
    if x[LOAD] > y[LOAD] or x[HELD] > y[HELD]:
        return False
    return x[LOAD_B] <= y[LOAD_B] and x[HELD_B] <= y[HELD_B]


@compiled
@no_type_check
def _sort(keys, order, buffer, count: int) -> None:
    """Sort the first ``count`` of ``order`` by ``keys[order]``: merge sort from the bottom up,
    stable."""
    width = 1
    while width < count:
        for begin in range(0, count, 2 * width):
            middle, end = min(begin + width, count), min(begin + 2 * width, count)
            left, right = begin, middle
            for at in range(begin, end):
                take_left = right >= end or (
                    left < middle and keys[order[left]] <= keys[order[right]]
                )
                buffer[at] = order[left] if take_left else order[right]
                if take_left:
                    left += 1
                else:
                    right += 1
        for at in range(count):
            order[at] = buffer[at]
        width *= 2
