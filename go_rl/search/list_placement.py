"""Placement by list scheduling: units in a given order, each on the device where it ends first,
unless the device that was proposed for it is nearly as good.

The decoder of the step policy, and a generalisation of HEFT (Topcuoglu, Hariri, Wu 2002) without
insertion: ``attachment`` 0 is earliest finish time, infinite is the proposal itself.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import no_type_check

import numpy as np
from jaxtyping import Float64, Int, Int16
from numba import njit

from go_rl.search.orders import list_order
from go_rl.search.step_units import StepUnits


def place_in_order(
    units: StepUnits,
    score: Float64[np.ndarray, "B U"],
    proposal: Int[np.ndarray, "B U"],
    attachment: Float64[np.ndarray, "B"],
    caution: Float64[np.ndarray, "B"],
    capacity: Float64[np.ndarray, "D"],
) -> Int16[np.ndarray, "B U"]:
    """Return [B, U] devices.

    Args:
        units: the problem.
        score: [B, U] ready units are taken by ascending score.
        proposal: [B, U] device proposed for each unit.
        attachment: [B] seconds that another device must gain to be chosen.
        caution: [B] factor on the seconds of transfers.
        capacity: [D] bytes of weights that each device holds; a unit goes where there is room.
    """
    found = np.zeros(score.shape, np.int16)
    u = units.units

    def share(first: int) -> None:
        for i in range(first, len(score), threads):
            _place(
                list_order(u, score[i]), u.pred_ptr, u.pred, units.incoming, units.seconds,
                units.weight, capacity, proposal[i].astype(np.int64), attachment[i], caution[i],
                found[i],
            )  # fmt: skip

    threads = max(1, min(os.cpu_count() or 1, len(score)))
    if threads == 1:
        share(0)
    else:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(share, range(threads)))
    return found


@njit(cache=True, nogil=True)
@no_type_check
def _place(
    order, pred_ptr, pred, traffic, seconds, weight, capacity, proposal, attachment, caution,
    chosen,
):  # fmt: skip
    devices, count = seconds.shape
    free, held = np.zeros(devices), np.zeros(devices)
    end = np.zeros(count)
    for u in order:
        best, best_cost, best_end = -1, np.inf, 0.0
        roomy, most = 0, -np.inf
        for d in range(devices):
            if capacity[d] - held[d] > most and np.isfinite(seconds[d, u]):
                roomy, most = d, capacity[d] - held[d]
            if held[d] + weight[u] > capacity[d] or not np.isfinite(seconds[d, u]):
                continue
            start = free[d]
            for e in range(pred_ptr[u], pred_ptr[u + 1]):
                there = end[pred[e]]
                if chosen[pred[e]] != d:
                    there += caution * traffic[e]
                start = max(start, there)
            finish = start + seconds[d, u]
            cost = finish + (0.0 if d == proposal[u] else attachment)
            if cost < best_cost:
                best, best_cost, best_end = d, cost, finish
        if best < 0:  # no room anywhere, or nothing can run it: the replay says so
            best, best_end = roomy, free[roomy]
        chosen[u] = best
        free[best], end[u] = best_end, best_end
        held[best] += weight[u]


def work_quantile_devices(
    place: Float64[np.ndarray, "B U"],
    share: Float64[np.ndarray, "U"],
    devices: int,
    warp: Float64[np.ndarray, "B"] | None = None,
) -> Int16[np.ndarray, "B U"]:
    """Return [B, U] devices of a pipeline: units by ascending place, cut into equal work.

    Units at the same place stay together. ``warp`` [B]: exponents on the share of the work before
    a unit; above 1 the first devices get more of it.
    """
    order = np.argsort(place, axis=1, kind="stable")
    sorted_share = share[order]
    behind = np.cumsum(sorted_share, axis=1)
    sorted_place = np.take_along_axis(place, order, axis=1)
    middle = _of_ties(sorted_place, behind - sorted_share, behind)
    if warp is not None:
        middle = np.clip(middle, 0.0, 1.0) ** warp[:, None]
    device = np.empty(place.shape, np.int16)
    cut = np.clip(middle * devices, 0, devices - 1).astype(np.int16)
    np.put_along_axis(device, order, cut, axis=1)
    return device


def _of_ties(
    place: Float64[np.ndarray, "B U"],
    before: Float64[np.ndarray, "B U"],
    behind: Float64[np.ndarray, "B U"],
) -> Float64[np.ndarray, "B U"]:
    """[B, U] middle of the work of all units at the same place; places ascend."""
    middle = np.empty(place.shape)
    for row in range(len(place)):
        starts = np.flatnonzero(np.r_[True, place[row, 1:] > place[row, :-1]][: place.shape[1]])
        ends = np.r_[starts[1:], place.shape[1]] - 1
        value = 0.5 * (before[row, starts] + behind[row, ends])
        middle[row] = np.repeat(value, ends - starts + 1)
    return middle
