"""Rollouts of sequential dispatch: one unit after the other is selected and placed.

As DOPPLER has it (Yao et al., ICLR 2026): the graph is embedded once an episode, and two small
heads, *select* and *place*, decide on what they see at the moment. What the network gives for each
unit are the coefficients of these heads, so that a rollout is compiled code without the network.
Time is that of a list scheduler: devices work in the order of selection, a link carries one tensor
at a time, a tensor goes to each device once; the replay prices the plan.
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
from go_rl.policy.dispatch.features import HIDDEN, PLACE_FEATURES, SELECT_FEATURES, WINDOW
from go_rl.runtime.decoder_calls import count_decoder_calls
from go_rl.runtime.threads import on_threads
from go_rl.solvers.tree_search import next_uniform

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


class Heads(NamedTuple):
    """Both heads for one graph: a logit is w . x + v . tanh(x A + b) with a unit's own w, b, v."""

    select: Float32[np.ndarray, "U C"]
    """[U, C] w, b, v of each unit, side by side."""
    place: Float32[np.ndarray, "U P"]
    """[U, P] the same for the devices."""
    select_shared: Float32[np.ndarray, "F H"]
    """[F, H] A of the select head."""
    place_shared: Float32[np.ndarray, "G H"]
    """[G, H] A of the place head."""


class Dispatched(NamedTuple):
    """Plans of ``B`` rollouts."""

    device: Int16[np.ndarray, "B U"]
    """[B, U] device of each unit."""
    order: Int32[np.ndarray, "B U"]
    """[B, U] units in the order of selection."""


class Recorded(NamedTuple):
    """What the heads saw along ``B`` plans, at ``S`` of the selections."""

    select_seen: Float32[np.ndarray, "B S W F"]
    """[B, S, W, F] features of the candidates."""
    candidates: Int32[np.ndarray, "B S W"]
    """[B, S, W] units; -1: none."""
    selected: Int32[np.ndarray, "B S"]
    """[B, S] which candidate was selected."""
    place_seen: Float32[np.ndarray, "B S D G"]
    """[B, S, D, G] features of the devices."""
    possible: np.ndarray
    """[B, S, D] whether the unit could go there."""
    placed: Int32[np.ndarray, "B S"]
    """[B, S] device."""
    unit: Int32[np.ndarray, "B S"]
    """[B, S] the unit that was placed; -1: no selection."""


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

    def roll_out(self, heads: Heads, noise: Float32[np.ndarray, "B"], seed: int) -> Dispatched:
        """Return the plans of [B] rollouts; the same seed gives the same ones.

        Args:
            heads: of the network.
            noise: [B] temperature; 1 draws from the policy, 0 takes the likeliest choice.
            seed: of the draws.
        """
        count, units = len(noise), self.units.num_units
        count_decoder_calls(count)
        device, order = np.zeros((count, units), np.int16), np.zeros((count, units), np.int32)
        blank, nothing = _blank(0, 0), Dispatched(np.zeros(0, np.int16), np.zeros(0, np.int32))

        def share(rows: range) -> None:
            for i in rows:
                _dispatch(
                    self.arrays, heads, float(noise[i]), (seed * 1_000_003 + i) % 2**32, nothing,
                    0.0, device[i], order[i], blank, 0, 1,
                )  # fmt: skip

        if units:
            on_threads(share, count)
        return Dispatched(device, order)

    def follow(
        self, plans: Dispatched, steps: int, offset: int = 0, astray: float = 0.0
    ) -> Recorded:
        """Return what the heads see along given plans, and what the plans choose there.

        Args:
            plans: orders must be topological.
            steps: S, selections recorded of each plan, evenly spread.
            offset: shifts which ones.
            astray: probability that a unit goes to another device than its plan has it, whatever
                the plan chooses: what is seen then is the way back.
        """
        count, units = plans.device.shape
        devices, stride = len(self.capacity), max(1, -(-units // steps))
        rows = [_blank(steps, devices) for _ in range(count)]
        heads = _no_heads(units)

        def share(some: range) -> None:
            for i in some:
                _dispatch(
                    self.arrays, heads, 0.0, offset + i,
                    Dispatched(plans.device[i], plans.order[i]), astray, plans.device[i].copy(),
                    plans.order[i].copy(), rows[i], (offset + i) % stride, stride,
                )  # fmt: skip

        on_threads(share, count)
        return Recorded(*(np.stack(column) for column in zip(*rows, strict=True)))


def _blank(steps: int, devices: int) -> Recorded:
    return Recorded(
        np.zeros((steps, WINDOW, SELECTED), np.float32), np.full((steps, WINDOW), -1, np.int32),
        np.zeros(steps, np.int32), np.zeros((steps, devices, PLACED), np.float32),
        np.zeros((steps, devices), np.bool_), np.zeros(steps, np.int32),
        np.full(steps, -1, np.int32),
    )  # fmt: skip


def _no_heads(units: int) -> Heads:
    none = np.zeros((0, 0), np.float32)
    return Heads(none, none, none, none)


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
def _dispatch(a, heads, noise, seed, given, astray, device, order, record, first, stride):
    """One rollout. ``given``: the plan to follow, with a share ``astray`` of its units; empty:
    the heads decide. ``record``: what is seen at selections ``first``, ``first + stride``, …

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
    following, room = len(given.order) > 0, len(record.unit)
    random = np.array([seed], np.uint64)
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
    taken = np.zeros(count, np.bool_)
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
        keep = room > 0 and turn % stride == first and turn // stride < room
        row = turn // stride
        pick = 0
        if following:
            pick = _find(window, inside, given.order[turn])
            if pick < 0:  # it waits outside: it takes the place of the last candidate
                pick = _lowest(a.tail, window, inside)
                waiting = _push(a.tail, heap, waiting, window[pick])
                window[pick] = given.order[turn]
        if keep or (not following and inside > 1):
            _see_units(a, window, inside, free, born, missing, begun, device, last, unit, longest,
                       seen)  # fmt: skip
        if not following and inside > 1:
            best = -np.inf
            for k in range(inside):
                value = _logit(heads.select[window[k]], heads.select_shared, seen[k], SELECTED)
                if noise > 0:
                    value += noise * _gumbel(random)
                if value > best:
                    best, pick = value, k
        u = window[pick]
        if keep:
            record.selected[row] = pick
            for k in range(inside):
                record.candidates[row, k] = window[k]
                for f in range(SELECTED):
                    record.select_seen[row, k, f] = seen[k, f]
        # Place.
        _see_devices(a, u, free, load, held, link, busy, end, arrival, pull, need, on_layer,
                     last_on, device, done, total, unit, longest, start, there, finish, possible,
                     shown)  # fmt: skip
        where = np.int64(device[u])
        if keep:
            record.unit[row], record.placed[row] = u, where
        if following and astray > 0 and next_uniform(random) < astray:
            other = np.int64(next_uniform(random) * devices)
            if possible[other]:
                where = other
                device[u] = where
        if not following:
            best, where = -np.inf, NOWHERE
            for d in range(devices):
                if not possible[d]:
                    continue
                value = _logit(heads.place[u], heads.place_shared, shown[d], PLACED)
                if noise > 0:
                    value += noise * _gumbel(random)
                if value > best:
                    best, where = value, d
            device[u] = where
        if keep:
            for d in range(devices):
                record.possible[row, d] = possible[d]
                for f in range(PLACED):
                    record.place_seen[row, d, f] = shown[d, f]
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
        taken[u] = True
        inside -= 1
        window[pick] = window[inside]
        while waiting > 0 and inside < WINDOW:
            v, waiting = _pull(a.tail, heap, waiting)
            if not taken[v] and _find(window, inside, v) < 0:
                window[inside] = v
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
        x[12] = 1.0


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
def _logit(w, shared, x, features):
    """w . x + v . tanh(x A + b), with w, b, v side by side."""
    value = 0.0
    for f in range(features):
        value += w[f] * x[f]
    for h in range(HIDDEN):
        inner = w[features + h]
        for f in range(features):
            inner += x[f] * shared[f, h]
        value += w[features + HIDDEN + h] * np.tanh(inner)
    return value


@njit(cache=True, nogil=True)
@no_type_check
def _gumbel(random):
    return -np.log(-np.log(max(next_uniform(random), 1e-300)) + 1e-300)


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
def _find(window, inside, u):
    for k in range(inside):
        if window[k] == u:
            return k
    return NOWHERE


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
