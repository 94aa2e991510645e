"""Observations of the heads of sequential dispatch at one moment of a rollout."""

from __future__ import annotations

from typing import no_type_check

import numpy as np
from numba import njit

from go_rl.objectives.makespan.choices import NOWHERE
from go_rl.policy.dispatch.features import ADVICE

NOT_SENT = -1.0
"""Arrival time of a tensor where nothing sends it."""


@njit(cache=True, nogil=True)
@no_type_check
def see_units(
    a, window, inside, free, born, missing, begun, device, last, unit, longest, seen
):  # fmt: skip
    """Write the `SELECT_FEATURES` of the candidates."""
    now, urgent = np.inf, 0.0
    for d in range(len(free)):
        now = min(now, free[d])
    for k in range(inside):
        u = window[k]
        urgent = max(urgent, max(born[u], now) + a.tail[u])
    for k in range(inside):
        u = window[k]
        heaviest, home, follows = -1.0, NOWHERE, 0.0
        for e in range(a.pred_ptr[u], a.pred_ptr[u + 1]):
            p = a.pred[e]
            if p == last:
                follows = 1.0
            if a.traffic[e] > heaviest:
                heaviest, home = a.traffic[e], np.int64(device[p])
        freed = 0
        for j in range(a.succ_ptr[u], a.succ_ptr[u + 1]):
            if missing[a.succ[j]] == 1:
                freed += 1
        x = seen[k]
        x[0] = a.tail[u] / longest
        x[1] = _log(max(born[u] - now, 0.0) / unit)
        x[2] = _log(max(now - born[u], 0.0) / unit)
        x[3] = u / len(born)
        x[4] = a.depth[u]
        x[5] = _log(a.work[u] / unit)
        x[6] = follows
        x[7] = a.backward[u]
        x[8] = _log((urgent - max(born[u], now) - a.tail[u]) / unit)
        x[9] = 0.0 if home == NOWHERE else _log((free[home] - now) / unit)
        x[10] = begun[a.layer[u]] / a.layer_work[a.layer[u]]
        x[11] = _log(float(freed))


@njit(cache=True, nogil=True)
@no_type_check
def see_devices(
    a, u, free, load, held, link, busy, end, arrival, pull, need, on_layer, last_on, device, done,
    total, unit, longest, start, there, finish, possible, shown,
):  # fmt: skip
    """Write the `PLACE_FEATURES` of a unit on each device, and when it could start and end."""
    devices = len(free)
    first, past = a.pred_ptr[u], a.pred_ptr[u + 1]
    # Home: the device that the largest operand comes from.
    heaviest, home = -1.0, NOWHERE
    for e in range(first, past):
        if a.traffic[e] > heaviest:
            heaviest, home = a.traffic[e], np.int64(device[a.pred[e]])
    least_end, least_start, least_there = np.inf, np.inf, np.inf
    least_free, fastest, any_room = np.inf, np.inf, False
    # Devices that can run the unit and have room for its weights.
    for d in range(devices):
        able = np.isfinite(a.seconds[d, u])
        possible[d] = able and held[d] + a.weight[u] <= a.capacity[d]
        any_room = any_room or possible[d]
    # Earliest start on each: start = max(device free, all operands there).
    for d in range(devices):
        if not any_room:  # nothing fits: the replay reports it
            possible[d] = np.isfinite(a.seconds[d, u])
        for source in range(devices):
            busy[source] = link[d, source]
        there[d] = 0.0
        for e in range(first, past):
            at = arrive(a.pred[e], d, a.traffic[e], end, device, arrival, busy)
            there[d] = max(there[d], at)
        start[d] = max(free[d], there[d])
        finish[d] = start[d] + a.seconds[d, u]
        if possible[d]:
            least_end, least_start = min(least_end, finish[d]), min(least_start, start[d])
            least_there, least_free = min(least_there, there[d]), min(least_free, free[d])
            fastest = min(fastest, a.seconds[d, u])
    if fastest == np.inf:  # nothing can run it at all
        for d in range(devices):
            possible[d] = True
            finish[d] = start[d] + a.work[u]
            least_end, least_start = min(least_end, finish[d]), min(least_start, start[d])
            least_there, least_free = min(least_there, there[d]), min(least_free, free[d])
        fastest = a.work[u]
    # Sums that the features are shares of.
    group, progress = a.layer[u], done / total
    begun = 0.0
    for d in range(devices):
        begun += on_layer[group, d]
    future = 0.0
    for k in range(a.succ_ptr[u], a.succ_ptr[u + 1]):
        future += need[a.succ[k]]
    for d in range(devices):
        # Features in the order of `PLACE_FEATURES`.
        x = shown[d]
        if not possible[d]:
            x[:] = 0.0
            continue
        moved, gathered = max(need[u] - pull[u, d], 0.0), 0.0
        for k in range(a.succ_ptr[u], a.succ_ptr[u + 1]):
            gathered += pull[a.succ[k], d]
        lasting = finish[d] - start[d]
        middle = (d + 0.5) / devices
        x[0] = 1.0 if finish[d] == least_end else 0.0
        x[1] = _log((finish[d] - least_end) / unit)
        x[2] = _log((start[d] - least_start) / unit)
        x[3] = _log((free[d] - least_free) / unit)
        x[4] = _log((there[d] - least_there) / unit)
        x[5] = _log(moved / unit)
        x[6] = min(moved / max(lasting, 1e-300), 4.0)
        x[7] = pull[u, d] / max(need[u], 1e-300)
        x[8] = 1.0 if d == home else 0.0
        x[9] = on_layer[group, d] / max(begun, 1e-300)
        x[10] = 1.0 if d == last_on[group] else 0.0
        x[11] = devices * load[d] / total - progress
        x[12] = min(held[d] / a.capacity[d], 1.0)
        x[13] = abs(middle - a.depth[u])
        x[14] = abs(middle - a.before[u])
        x[15] = _log(lasting / max(fastest, 1e-300) - 1.0)
        x[16] = gathered / max(future, 1e-300)
        x[17] = _log(max(finish[d] + a.tail[u] - a.work[u] - longest, 0.0) / unit)
        for k in range(ADVICE):
            x[18 + k] = 1.0 if d == a.advice[k, u] else 0.0


@njit(cache=True, nogil=True)
@no_type_check
def arrive(producer, where, seconds, end, device, arrival, busy):
    """Arrival time of a producer's results on device ``where``; ``busy`` [D]: until when the links
    to it are, the transfer included afterwards."""
    source = np.int64(device[producer])
    if source == where:
        return end[producer]
    if arrival[producer, where] != NOT_SENT:
        return arrival[producer, where]
    busy[source] = max(busy[source], end[producer]) + seconds
    return busy[source]


@njit(cache=True, nogil=True)
@no_type_check
def _log(value):
    return np.log1p(max(value, 0.0))
