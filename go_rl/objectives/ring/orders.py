"""Topological orders of units that are worth cutting."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float64, Int32

from go_rl.core.graph.depth_first import depth_first_order
from go_rl.core.graph.heads_tails import path_sums_after, path_sums_before
from go_rl.core.graph.list_order import list_order as list_schedule
from go_rl.objectives.common.units import RingUnits

ROUNDS = 30
"""Times that `barycentric` moves every unit."""


def depth_first(units: RingUnits, rank: Float64[np.ndarray, "U"]) -> Int32[np.ndarray, "U"]:
    """Return a depth-first topological order; lower [U] rank first among equals."""
    return depth_first_order(units.pred_ptr, units.succ_ptr, units.succ, rank)


def list_order(units: RingUnits, score: Float64[np.ndarray, "U"]) -> Int32[np.ndarray, "U"]:
    """Return the topological order of list scheduling: the ready unit of the lowest [U] score
    first, the earlier unit among equals."""
    order = list_schedule(units.pred_ptr, units.succ_ptr, units.succ, score)
    return order.astype(np.int32)


def reverse_depth_first(units: RingUnits, rank: Float64[np.ndarray, "U"]) -> Int32[np.ndarray, "U"]:
    """Return a topological order depth first from the sinks: producers come as late as
    their consumers allow; the highest [U] rank last among equals."""
    order = depth_first_order(units.succ_ptr, units.pred_ptr, units.pred, -rank)
    return order[::-1].copy()


def positions(order: Int32[np.ndarray, "U"]) -> Float64[np.ndarray, "U"]:
    """Return [U] the place of each unit in an order, in (0, 1)."""
    place = np.empty(len(order))
    place[order] = (np.arange(len(order)) + 0.5) / max(len(order), 1)
    return place


def barycentric(units: RingUnits, place: Float64[np.ndarray, "U"]) -> Float64[np.ndarray, "U"]:
    """Return [U] places in a topological order with short edges.

    Every unit moves towards the mean place of its neighbours, places are ranked again, and so on
    (the barycentre heuristic of Sugiyama, Tagawa, Toda 1981, on one line).
    """
    count = units.num_units
    source = np.repeat(np.arange(count), np.diff(units.succ_ptr))
    degree = np.bincount(source, minlength=count) + np.bincount(units.succ, minlength=count)
    for _ in range(ROUNDS):
        total = np.bincount(source, place[units.succ], count)
        total += np.bincount(units.succ, place[source], count)
        mean = np.where(degree > 0, total / np.maximum(degree, 1), place)
        order = np.argsort(0.2 * place + 0.8 * mean, kind="stable")
        place = positions(order.astype(np.int32))
    return positions(list_order(units, place))


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
