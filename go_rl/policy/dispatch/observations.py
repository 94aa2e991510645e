"""Observations of the heads of sequential dispatch at one moment of a rollout.

``a``: `DispatchArrays`, ``s``: `RolloutState`, ``u``: a unit, ``d``: a device.
"""

from __future__ import annotations

from typing import no_type_check

import numpy as np

from go_rl.core.compiled_struct import compiled
from go_rl.objectives.makespan.choices import NOWHERE
from go_rl.policy.dispatch.features import ADVICE
from go_rl.policy.dispatch.rollout_state import LEAST, NOT_SENT


@compiled
@no_type_check
def see_units(a, s, last) -> None:
    """Write the `SELECT_FEATURES` of the candidates; ``last``: the unit placed before."""
    now, urgent = np.inf, 0.0
    for d in range(len(s.free)):
        now = min(now, s.free[d])
    for k in range(s.candidates[0]):
        u = s.window[k]
        urgent = max(urgent, max(s.born[u], now) + a.tail[u])
    for k in range(s.candidates[0]):
        _see_unit(a, s, s.window[k], last, now, urgent, s.seen[k])


@compiled
@no_type_check
def _see_unit(a, s, u, last, now, urgent, x) -> None:
    """Write the features ``x`` of one candidate. ``now``: when the first device is free;
    ``urgent``: the latest end of all if a candidate starts as early as it can."""
    home, follows, freed = _home(a, s, u), 0.0, 0
    for e in range(a.pred_ptr[u], a.pred_ptr[u + 1]):
        if a.pred[e] == last:
            follows = 1.0
    for k in range(a.succ_ptr[u], a.succ_ptr[u + 1]):
        if s.missing[a.succ[k]] == 1:
            freed += 1
    # In the order of `SELECT_FEATURES`.
    x[0] = a.tail[u] / a.longest
    x[1] = _log(max(s.born[u] - now, 0.0) / a.mean)
    x[2] = _log(max(now - s.born[u], 0.0) / a.mean)
    x[3] = u / len(s.born)
    x[4] = a.depth[u]
    x[5] = _log(a.work[u] / a.mean)
    x[6] = follows
    x[7] = a.backward[u]
    x[8] = _log((urgent - max(s.born[u], now) - a.tail[u]) / a.mean)
    x[9] = 0.0 if home == NOWHERE else _log((s.free[home] - now) / a.mean)
    x[10] = s.begun[a.layer[u]] / a.layer_work[a.layer[u]]
    x[11] = _log(float(freed))


@compiled
@no_type_check
def see_devices(a, s, u, done) -> None:
    """Write the `PLACE_FEATURES` of a unit on each device, and when it could start and end there.

    ``done``: seconds of work placed so far.
    """
    _find_possible(a, s, u)
    for d in range(len(s.free)):
        _try_device(a, s, u, d)
    _compare_times(a, s, u)
    _see_data(a, s, u)
    home, progress = _home(a, s, u), done / a.total
    for d in range(len(s.free)):
        if not s.possible[d]:
            continue
        x = s.shown[d]
        middle = (d + 0.5) / len(s.free)
        x[8] = 1.0 if d == home else 0.0
        x[10] = 1.0 if d == s.last_on[a.layer[u]] else 0.0
        x[11] = len(s.free) * s.load[d] / a.total - progress
        x[12] = min(s.held[d] / a.capacity[d], 1.0)
        x[13] = abs(middle - a.depth[u])
        x[14] = abs(middle - a.before[u])
        for k in range(ADVICE):
            x[18 + k] = 1.0 if d == a.advice[k, u] else 0.0


@compiled
@no_type_check
def _find_possible(a, s, u) -> None:
    """Find the devices that can run a unit and have room for its weights; where none has room,
    those that can run it, and where none can, all of them: the replay reports it."""
    able, roomy = False, False
    for d in range(len(s.free)):
        s.lasting[d] = a.seconds[d, u]
        runs = np.isfinite(a.seconds[d, u])
        s.possible[d] = runs and s.held[d] + a.weight[u] <= a.capacity[d]
        able, roomy = able or runs, roomy or s.possible[d]
    if roomy:
        return
    for d in range(len(s.free)):
        s.possible[d] = not able or np.isfinite(a.seconds[d, u])
        if not able:
            s.lasting[d] = a.work[u]


@compiled
@no_type_check
def _try_device(a, s, u, d) -> None:
    """Earliest start of a unit on a device: start = max(device free, all operands there)."""
    for e in range(a.pred_ptr[u], a.pred_ptr[u + 1]):
        through = a.channel[np.int64(s.device[a.pred[e]]), d]
        s.busy[through] = s.link[through]
    there = 0.0
    for e in range(a.pred_ptr[u], a.pred_ptr[u + 1]):
        there = max(there, arrive(a, s, e, d, s.busy))
    s.there[d], s.start[d] = there, max(s.free[d], there)
    s.finish[d] = s.start[d] + s.lasting[d]


@compiled
@no_type_check
def _compare_times(a, s, u) -> None:
    """Write the features that compare a device's times with the best of the possible ones."""
    finish, start, there, free, fastest = np.inf, np.inf, np.inf, np.inf, np.inf
    for d in range(len(s.free)):
        if s.possible[d]:
            finish, start = min(finish, s.finish[d]), min(start, s.start[d])
            there, free = min(there, s.there[d]), min(free, s.free[d])
            fastest = min(fastest, s.lasting[d])
    for d in range(len(s.free)):
        if not s.possible[d]:
            continue
        x = s.shown[d]
        lasting = s.finish[d] - s.start[d]
        x[0] = 1.0 if s.finish[d] == finish else 0.0
        x[1] = _log((s.finish[d] - finish) / a.mean)
        x[2] = _log((s.start[d] - start) / a.mean)
        x[3] = _log((s.free[d] - free) / a.mean)
        x[4] = _log((s.there[d] - there) / a.mean)
        x[15] = _log(lasting / max(fastest, LEAST) - 1.0)
        x[17] = _log(max(s.finish[d] + a.tail[u] - a.work[u] - a.longest, 0.0) / a.mean)


@compiled
@no_type_check
def _see_data(a, s, u) -> None:
    """Write the features on the operands that lie on a device, those of the unit's consumers, and
    the work of its layer there."""
    begun, future, group = 0.0, 0.0, a.layer[u]
    for d in range(len(s.free)):
        begun += s.on_layer[group, d]
    for k in range(a.succ_ptr[u], a.succ_ptr[u + 1]):
        future += a.need[a.succ[k]]
    for d in range(len(s.free)):
        if not s.possible[d]:
            continue
        x = s.shown[d]
        moved, gathered = max(a.need[u] - s.pull[u, d], 0.0), 0.0
        for k in range(a.succ_ptr[u], a.succ_ptr[u + 1]):
            gathered += s.pull[a.succ[k], d]
        x[5] = _log(moved / a.mean)
        x[6] = min(moved / max(s.finish[d] - s.start[d], LEAST), 4.0)
        x[7] = s.pull[u, d] / max(a.need[u], LEAST)
        x[9] = s.on_layer[group, d] / max(begun, LEAST)
        x[16] = gathered / max(future, LEAST)


@compiled
@no_type_check
def arrive(a, s, e, d, busy):
    """Arrival time on a device of what edge ``e`` of ``pred`` carries; ``busy`` [C]: until when
    each channel is, the transfer included afterwards."""
    producer = a.pred[e]
    source = np.int64(s.device[producer])
    if source == d:
        return s.end[producer]
    if s.arrival[producer, d] != NOT_SENT:
        return s.arrival[producer, d]
    through = a.channel[source, d]
    sent = a.traffic[e] * a.scale[source, d] + a.extra[source, d]
    busy[through] = max(busy[through], s.end[producer]) + sent
    return busy[through]


@compiled
@no_type_check
def _home(a, s, u):
    """Device that the largest operand comes from, or `NOWHERE`."""
    heaviest, home = -1.0, np.int64(NOWHERE)
    for e in range(a.pred_ptr[u], a.pred_ptr[u + 1]):
        if a.traffic[e] > heaviest:
            heaviest, home = a.traffic[e], np.int64(s.device[a.pred[e]])
    return home


@compiled
@no_type_check
def _log(value):
    return np.log1p(max(value, 0.0))
