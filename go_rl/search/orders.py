"""Topological orders of units that are worth cutting."""

from __future__ import annotations

from collections.abc import Iterator
from typing import no_type_check

import numpy as np
from jaxtyping import Float64, Int32
from numba import njit

from go_rl.search.ring_units import RingUnits
from go_rl.solvers.heads_tails import path_sums_after, path_sums_before


@njit(cache=True)
@no_type_check
def _depth_first(pred_ptr, succ_ptr, succ, rank):
    """Take the newest ready unit; among those made ready together, the smallest rank first."""
    units = len(rank)
    order = np.empty(units, np.int32)
    waiting = pred_ptr[1:] - pred_ptr[:-1]
    stack = np.empty(units, np.int32)
    top = 0
    roots = np.flatnonzero(waiting == 0)
    for v in roots[np.argsort(-rank[roots])]:
        stack[top] = v
        top += 1
    done = 0
    while top > 0:
        top -= 1
        v = stack[top]
        order[done] = v
        done += 1
        first = top
        for i in range(succ_ptr[v], succ_ptr[v + 1]):
            w = succ[i]
            waiting[w] -= 1
            if waiting[w] == 0:
                at = top
                while at > first and rank[stack[at - 1]] < rank[w]:
                    stack[at] = stack[at - 1]
                    at -= 1
                stack[at] = w
                top += 1
    return order


def depth_first(units: RingUnits, rank: Float64[np.ndarray, "U"]) -> Int32[np.ndarray, "U"]:
    """Return a depth-first topological order; lower [U] rank first among equals."""
    return _depth_first(units.pred_ptr, units.succ_ptr, units.succ, rank)


def candidate_orders(units: RingUnits, seed: int) -> Iterator[Int32[np.ndarray, "U"]]:
    """Yield topological orders without end: as given, by level, by latest level, depth first by
    several ranks, then depth first by random ranks."""
    natural = np.arange(units.num_units, dtype=np.int32)
    ones = np.ones(units.num_units)
    level = path_sums_before(units.pred_ptr, units.pred, ones)
    latest = -path_sums_after(units.succ_ptr, units.succ, ones)
    yield natural
    yield depth_first(units, natural.astype(np.float64))
    yield depth_first(units, -path_sums_after(units.succ_ptr, units.succ, units.work))
    yield depth_first(units, path_sums_after(units.succ_ptr, units.succ, units.work))
    yield np.lexsort((natural, level)).astype(np.int32)
    yield np.lexsort((natural, latest)).astype(np.int32)
    yield depth_first(units, -natural.astype(np.float64))
    rng = np.random.default_rng(seed)
    while True:
        yield depth_first(units, rng.random(units.num_units))
