"""Placement by list scheduling: units one after the other, each on the device where it ends first,
unless the device that was proposed for it is nearly as good.

The decoder of the step policy, and a generalisation of HEFT (Topcuoglu, Hariri, Wu 2002) without
insertion: ``attachment`` 0 is earliest finish time, infinite is the proposal itself. As in the
replay, a link carries one tensor at a time, and a tensor goes to each device once.
"""

from __future__ import annotations

import heapq
from typing import NamedTuple, no_type_check

import numpy as np
from jaxtyping import Float64, Int, Int16
from numba import njit

from go_rl.objectives.makespan.choices import NOWHERE
from go_rl.objectives.makespan.units import MakespanUnits
from go_rl.runtime.decoder_calls import count_decoder_calls
from go_rl.runtime.threads import on_threads

NOT_SENT = -1.0
"""When a tensor arrives where nothing sends it."""


class ListRules(NamedTuple):
    """How ``B`` plans are made; each a number a plan."""

    attachment: Float64[np.ndarray, "B"]
    """[B] seconds that another device than the proposed one must gain to be chosen."""
    caution: Float64[np.ndarray, "B"]
    """[B] factor on the seconds of transfers."""
    chronology: Float64[np.ndarray, "B"]
    """[B] units are taken by when their producers end plus this many times their score, in shares
    of the step (all work, evenly spread). 0: as time goes; large: by score alone."""


def place_in_order(
    units: MakespanUnits,
    score: Float64[np.ndarray, "B U"],
    proposal: Int[np.ndarray, "B U"],
    rules: ListRules,
    capacity: Float64[np.ndarray, "D"],
) -> Int16[np.ndarray, "B U"]:
    """Return [B, U] devices.

    Args:
        units: the problem.
        score: [B, U] in 0 to 1; of what is ready, the lowest is taken first; see `ListRules`.
        proposal: [B, U] device proposed for each unit.
        rules: of each plan.
        capacity: [D] bytes of weights that each device holds; a unit goes where there is room.
    """
    count_decoder_calls(len(score))
    found = np.zeros(score.shape, np.int16)
    u = units.units
    step = u.work.sum() / len(capacity)

    def share(rows: range) -> None:
        for i in rows:
            _place(
                step * rules.chronology[i] * score[i], u.succ_ptr, u.succ, u.pred_ptr, u.pred,
                units.incoming, units.seconds, units.weight, capacity, proposal[i].astype(np.int64),
                rules.attachment[i], rules.caution[i], found[i],
            )  # fmt: skip

    on_threads(share, len(score))
    return found


@njit(cache=True, nogil=True)
@no_type_check
def _place(
    wait, succ_ptr, succ, pred_ptr, pred, traffic, seconds, weight, capacity, proposal, attachment,
    caution, chosen,
):  # fmt: skip
    """``wait`` [U]: seconds after its producers' end at which a unit has its turn."""
    devices, count = seconds.shape
    free, held, end = np.zeros(devices), np.zeros(devices), np.zeros(count)
    link, busy = np.zeros((devices, devices)), np.zeros(devices)
    arrival = np.full((count, devices), NOT_SENT)
    missing = pred_ptr[1:] - pred_ptr[:-1]
    ready = [(wait[u], u) for u in range(count) if missing[u] == 0]
    heapq.heapify(ready)
    while len(ready) > 0:
        u = heapq.heappop(ready)[1]
        first, last = pred_ptr[u], pred_ptr[u + 1]
        best, best_cost, best_end = NOWHERE, np.inf, 0.0
        roomy, most = 0, -np.inf
        for d in range(devices):
            if not np.isfinite(seconds[d, u]):
                continue
            if capacity[d] - held[d] > most:
                roomy, most = d, capacity[d] - held[d]
            if held[d] + weight[u] > capacity[d]:
                continue
            start = free[d]
            for source in range(devices):
                busy[source] = link[d, source]
            for e in range(first, last):
                moved = caution * traffic[e]
                start = max(start, _arrive(pred[e], d, moved, end, chosen, arrival, busy))
            finish = start + seconds[d, u]
            cost = finish + (0.0 if d == proposal[u] else attachment)
            if cost < best_cost:
                best, best_cost, best_end = d, cost, finish
        if best == NOWHERE:  # no room anywhere, or nothing can run it: the replay reports it
            best, best_end = roomy, free[roomy]
        for e in range(first, last):
            moved = caution * traffic[e]
            at = _arrive(pred[e], best, moved, end, chosen, arrival, link[best])
            arrival[pred[e], best] = at
        chosen[u], free[best], end[u] = best, best_end, best_end
        held[best] += weight[u]
        for k in range(succ_ptr[u], succ_ptr[u + 1]):
            v = np.int64(succ[k])
            missing[v] -= 1
            if missing[v] == 0:
                after = 0.0
                for e in range(pred_ptr[v], pred_ptr[v + 1]):
                    after = max(after, end[pred[e]])
                heapq.heappush(ready, (after + wait[v], v))


@njit(cache=True, nogil=True)
@no_type_check
def _arrive(producer, device, seconds, end, chosen, arrival, busy):
    """When a producer's results are on a device; ``busy`` [D]: until when the links to it are, the
    transfer included afterwards."""
    source = chosen[producer]
    if source == device:
        return end[producer]
    if arrival[producer, device] != NOT_SENT:
        return arrival[producer, device]
    busy[source] = max(busy[source], end[producer]) + seconds
    return busy[source]


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
