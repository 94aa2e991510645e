"""Rollouts of sequential dispatch: one unit after the other is selected and placed.

As DOPPLER has it (Yao et al., ICLR 2026): the network runs once an episode, and two small heads,
*select* and *place*, decide on what they see at the moment. A head is linear, w . x, with weights
that the network draws for the whole rollout; the highest score is taken. So a rollout is compiled
code, and a plan a function of the weights. Time is that of a list scheduler: devices work in the
order of selection, a link carries one tensor at a time, a tensor goes to each device once; the
replay prices the plan.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, no_type_check

import numpy as np
from jaxtyping import Float32, Float64, Int16, Int32
from numba import njit

from go_rl.objectives.makespan.choices import NOWHERE
from go_rl.objectives.makespan.units import MakespanUnits
from go_rl.policy.dispatch.features import PLACE_FEATURES, SELECT_FEATURES, WINDOW
from go_rl.runtime.decoder_calls import count_decoder_calls
from go_rl.runtime.threads import on_threads

NOT_SENT = -1.0
"""When a tensor arrives where nothing sends it."""
PLACED, SELECTED = len(PLACE_FEATURES), len(SELECT_FEATURES)


class DispatchArrays(NamedTuple):
    """What the kernel reads of a problem: ``U`` units, ``D`` devices, ``Y`` edges, ``L`` layers."""

    succ_ptr: np.ndarray
    succ: np.ndarray
    pred_ptr: np.ndarray
    pred: np.ndarray
    """[U + 1], [Y] consumers and producers."""
    traffic: np.ndarray
    """[Y] link seconds by edge of ``pred``."""
    seconds: np.ndarray
    """[D, U]; inf: not possible."""
    weight: np.ndarray
    """[U] bytes."""
    capacity: np.ndarray
    """[D] bytes."""
    tail: np.ndarray
    """[U] seconds from a unit's start to the end, transfers included (upward rank)."""
    depth: np.ndarray
    """[U] layer in 0 to 1."""
    before: np.ndarray
    """[U] share of the work before a unit, by number."""
    backward: np.ndarray
    """[U] share of backward nodes."""
    work: np.ndarray
    """[U] seconds on the fastest device."""
    layer: np.ndarray
    """[U] number of the layer, 0 to L - 1."""
    layer_work: np.ndarray
    """[L] seconds."""


class HeadWeights(NamedTuple):
    """Weights of both heads for ``B`` rollouts."""

    select: Float32[np.ndarray, "B F"]
    """[B, F]."""
    place: Float32[np.ndarray, "B G"]
    """[B, G]."""


class Dispatched(NamedTuple):
    """Plans of ``B`` rollouts."""

    device: Int16[np.ndarray, "B U"]
    """[B, U] device of each unit."""
    order: Int32[np.ndarray, "B U"]
    """[B, U] units in the order of selection."""


@dataclass(frozen=True, eq=False)
class Dispatcher:
    """Rollouts of one problem."""

    units: MakespanUnits
    capacity: Float64[np.ndarray, "D"]
    """[D] bytes of weights that each device holds; inf: not checked."""

    @cached_property
    def arrays(self) -> DispatchArrays:
        """What the kernel reads."""
        merged, u = self.units, self.units.units
        _, layer = np.unique(merged.main_layer, return_inverse=True)
        layers = int(layer.max(initial=-1)) + 1
        total = max(float(u.work.sum()), 1e-300)
        return DispatchArrays(
            u.succ_ptr.astype(np.int64), u.succ.astype(np.int64), u.pred_ptr.astype(np.int64),
            u.pred.astype(np.int64), merged.incoming, merged.seconds, merged.weight, self.capacity,
            _tails(merged), np.clip(merged.layer, 0.0, 1.0), (np.cumsum(u.work) - u.work) / total,
            merged.backward, u.work, layer.astype(np.int64),
            np.maximum(np.bincount(layer, u.work, layers), 1e-300),
        )  # fmt: skip

    def roll_out(self, weights: HeadWeights) -> Dispatched:
        """Return the plans of [B] rollouts."""
        select, place = (np.ascontiguousarray(rows, np.float32) for rows in weights)
        count, units = len(select), self.units.num_units
        count_decoder_calls(count)
        device, order = np.zeros((count, units), np.int16), np.zeros((count, units), np.int32)

        def share(rows: range) -> None:
            for i in rows:
                _dispatch(self.arrays, select[i], place[i], device[i], order[i])

        if units:
            on_threads(share, count)
        return Dispatched(device, order)


def _tails(merged: MakespanUnits) -> Float64[np.ndarray, "U"]:
    """[U] longest path to the end, every transfer paid for (HEFT, equation 8)."""
    units = merged.units
    rank = units.work.copy()
    for u in range(units.num_units - 1, -1, -1):
        rows = slice(units.succ_ptr[u], units.succ_ptr[u + 1])
        rank[u] += (merged.traffic[rows] + rank[units.succ[rows]]).max(initial=0.0)
    return rank


@njit(cache=True, nogil=True)
@no_type_check
def _dispatch(a, select, place, device, order):
    """One rollout with weights ``select`` [F] and ``place`` [G].

    State beside the arrays, over ``U`` units and ``D`` devices:

        free      [D]     end of the last unit of each device
        load      [D]     seconds of work placed
        held      [D]     bytes of weights placed
        link      [D, D]  until when the link to the first index from the second is busy
        end       [U]     end of a unit; ``born`` [U] when its last producer ends
        arrival   [U, D]  when a unit's results are on a device
        pull      [U, D]  link seconds of data that a unit finds on a device
        on_layer  [L, D]  seconds of a layer's work there; ``last_on`` [L] device of its last unit
        window    [W]     candidates, ``inside`` of them; the other ready units wait in ``heap``
    """
    devices, count = a.seconds.shape
    layers = len(a.layer_work)
    free, load, held = np.zeros(devices), np.zeros(devices), np.zeros(devices)
    link, busy = np.zeros((devices, devices)), np.zeros(devices)
    end, born = np.zeros(count), np.zeros(count)
    arrival = np.full((count, devices), NOT_SENT)
    pull, need = np.zeros((count, devices)), np.zeros(count)
    on_layer, last_on = np.zeros((layers, devices)), np.full(layers, NOWHERE)
    begun = np.zeros(layers)
    total, longest = 0.0, 0.0
    for u in range(count):
        total += a.work[u]
        longest = max(longest, a.tail[u])
        for e in range(a.pred_ptr[u], a.pred_ptr[u + 1]):
            need[u] += a.traffic[e]
    total, longest = max(total, 1e-300), max(longest, 1e-300)
    unit = total / count
    missing = a.pred_ptr[1:] - a.pred_ptr[:-1]
    window, inside = np.zeros(WINDOW, np.int64), 0
    heap, waiting = np.zeros(count, np.int64), 0
    for u in range(count):
        if missing[u] == 0:
            inside, waiting = _join(a.tail, window, inside, heap, waiting, u)
    seen = np.zeros((WINDOW, SELECTED), np.float32)
    shown = np.zeros((devices, PLACED), np.float32)
    start, there, finish = np.zeros(devices), np.zeros(devices), np.zeros(devices)
    possible = np.zeros(devices, np.bool_)
    done, last = 0.0, NOWHERE
    for turn in range(count):
        # Select.
        pick, best = 0, -np.inf
        if inside > 1:
            _see_units(a, window, inside, free, born, missing, begun, device, last, unit, longest,
                       seen)  # fmt: skip
            for k in range(inside):
                value = _score(select, seen[k])
                if value > best:
                    best, pick = value, k
        u = window[pick]
        # Place.
        _see_devices(a, u, free, load, held, link, busy, end, arrival, pull, need, on_layer,
                     last_on, device, done, total, unit, longest, start, there, finish, possible,
                     shown)  # fmt: skip
        best, where = -np.inf, NOWHERE
        for d in range(devices):
            if possible[d]:
                value = _score(place, shown[d])
                if value > best:
                    best, where = value, d
        device[u] = where
        # The unit takes its place in time.
        for e in range(a.pred_ptr[u], a.pred_ptr[u + 1]):
            p = a.pred[e]
            arrival[p, where] = _arrive(p, where, a.traffic[e], end, device, arrival, link[where])
        lasting = a.seconds[where, u]
        if not np.isfinite(lasting):
            lasting = a.work[u]
        end[u] = max(start[where], free[where]) + lasting
        free[where] = end[u]
        load[where] += lasting
        held[where] += a.weight[u]
        group = a.layer[u]
        on_layer[group, where] += a.work[u]
        begun[group] += a.work[u]
        last_on[group] = where
        done += a.work[u]
        order[turn] = u
        last = u
        inside -= 1
        window[pick] = window[inside]
        while waiting > 0 and inside < WINDOW:
            window[inside], waiting = _pull(a.tail, heap, waiting)
            inside += 1
        for k in range(a.succ_ptr[u], a.succ_ptr[u + 1]):
            v = a.succ[k]
            born[v] = max(born[v], end[u])
            missing[v] -= 1
            for e in range(a.pred_ptr[v], a.pred_ptr[v + 1]):
                if a.pred[e] == u:
                    pull[v, where] += a.traffic[e]
            if missing[v] == 0:
                inside, waiting = _join(a.tail, window, inside, heap, waiting, v)


@njit(cache=True, nogil=True)
@no_type_check
def _see_units(
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
def _see_devices(
    a, u, free, load, held, link, busy, end, arrival, pull, need, on_layer, last_on, device, done,
    total, unit, longest, start, there, finish, possible, shown,
):  # fmt: skip
    """Write the `PLACE_FEATURES` of a unit on each device, and when it could start and end."""
    devices = len(free)
    first, past = a.pred_ptr[u], a.pred_ptr[u + 1]
    heaviest, home = -1.0, NOWHERE
    for e in range(first, past):
        if a.traffic[e] > heaviest:
            heaviest, home = a.traffic[e], np.int64(device[a.pred[e]])
    least_end, least_start, least_there = np.inf, np.inf, np.inf
    least_free, fastest, any_room = np.inf, np.inf, False
    for d in range(devices):
        able = np.isfinite(a.seconds[d, u])
        possible[d] = able and held[d] + a.weight[u] <= a.capacity[d]
        any_room = any_room or possible[d]
    for d in range(devices):
        if not any_room:  # nothing fits: the replay reports it
            possible[d] = np.isfinite(a.seconds[d, u])
        for source in range(devices):
            busy[source] = link[d, source]
        there[d] = 0.0
        for e in range(first, past):
            at = _arrive(a.pred[e], d, a.traffic[e], end, device, arrival, busy)
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
    group, progress = a.layer[u], done / total
    begun = 0.0
    for d in range(devices):
        begun += on_layer[group, d]
    future = 0.0
    for k in range(a.succ_ptr[u], a.succ_ptr[u + 1]):
        future += need[a.succ[k]]
    for d in range(devices):
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


@njit(cache=True, nogil=True)
@no_type_check
def _score(w, x):
    value = 0.0
    for f in range(len(w)):
        value += w[f] * x[f]
    return value


@njit(cache=True, nogil=True)
@no_type_check
def _log(value):
    return np.log1p(max(value, 0.0))


@njit(cache=True, nogil=True)
@no_type_check
def _arrive(producer, where, seconds, end, device, arrival, busy):
    """When a producer's results are on a device; ``busy`` [D]: until when the links to it are, the
    transfer included afterwards."""
    source = np.int64(device[producer])
    if source == where:
        return end[producer]
    if arrival[producer, where] != NOT_SENT:
        return arrival[producer, where]
    busy[source] = max(busy[source], end[producer]) + seconds
    return busy[source]


@njit(cache=True, nogil=True)
@no_type_check
def _join(tail, window, inside, heap, waiting, u):
    """A unit becomes ready: a candidate if there is room or its rank is above the lowest."""
    if inside < WINDOW:
        window[inside] = u
        return inside + 1, waiting
    lowest = _lowest(tail, window, inside)
    if tail[u] > tail[window[lowest]]:
        u, window[lowest] = window[lowest], u
    return inside, _push(tail, heap, waiting, u)


@njit(cache=True, nogil=True)
@no_type_check
def _lowest(tail, window, inside):
    lowest = 0
    for k in range(1, inside):
        if tail[window[k]] < tail[window[lowest]]:
            lowest = k
    return lowest


@njit(cache=True, nogil=True)
@no_type_check
def _push(tail, heap, size, u):
    """Add to a binary heap, the highest rank first."""
    i = size
    while i > 0:
        parent = (i - 1) // 2
        if tail[heap[parent]] >= tail[u]:
            break
        heap[i] = heap[parent]
        i = parent
    heap[i] = u
    return size + 1


@njit(cache=True, nogil=True)
@no_type_check
def _pull(tail, heap, size):
    """Take the highest rank from the heap."""
    top = heap[0]
    size -= 1
    moved, i = heap[size], 0
    while 2 * i + 1 < size:
        child = 2 * i + 1
        if child + 1 < size and tail[heap[child + 1]] > tail[heap[child]]:
            child += 1
        if tail[moved] >= tail[heap[child]]:
            break
        heap[i] = heap[child]
        i = child
    heap[i] = moved
    return top, size
