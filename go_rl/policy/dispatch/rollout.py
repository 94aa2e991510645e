"""Rollouts of sequential dispatch: one unit after the other is selected and placed.

As DOPPLER has it (Yao et al., ICLR 2026): the network runs once an episode, and small heads,
*select* and *place*, decide on what they see at the moment (a third, *fuse*, once the units have
their places: `go_rl.policy.dispatch.fusion_head`). A head is linear, w . x, with weights for the
whole rollout; the highest score is taken. So a rollout is compiled code, and a plan a function of
the weights. Time is that of a list scheduler: devices work in the
order of selection, a link carries one tensor at a time, a tensor goes to each device once; the
replay prices the plan.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, no_type_check

import numpy as np
from jaxtyping import Float64, Int16, Int32
from numba import njit

from go_rl.objectives.makespan.choices import NOWHERE
from go_rl.objectives.makespan.units import MakespanUnits
from go_rl.policy.dispatch.features import (
    PLACE_FEATURES,
    SELECT_FEATURES,
    WINDOW,
    HeadWeights,
)
from go_rl.policy.dispatch.observations import NOT_SENT, arrive, see_devices, see_units
from go_rl.policy.dispatch.ready_units import join, pull_next
from go_rl.runtime.decoder_calls import count_decoder_calls
from go_rl.runtime.threads import on_threads

PLACED, SELECTED = len(PLACE_FEATURES), len(SELECT_FEATURES)


class DispatchArrays(NamedTuple):
    """Arrays of a problem that the rollout reads: ``U`` units, ``D`` devices, ``Y`` edges, ``L``
    layers."""

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
    advice: np.ndarray
    """[ADVICE, U] device of each unit by placements made beforehand."""


class Dispatched(NamedTuple):
    """Plans of ``B`` rollouts."""

    device: Int16[np.ndarray, "B U"]
    """[B, U] device of each unit."""
    order: Int32[np.ndarray, "B U"]
    """[B, U] units in the order of selection."""
    end: Float64[np.ndarray, "B U"]
    """[B, U] seconds at which a unit ends, by the list scheduler's clock."""


@dataclass(frozen=True, eq=False)
class Dispatcher:
    """Rollouts of one problem."""

    units: MakespanUnits
    capacity: Float64[np.ndarray, "D"]
    """[D] bytes of weights that each device holds; inf: not checked."""
    advice: Int16[np.ndarray, "A U"]
    """[ADVICE, U] device of each unit by placements made beforehand: the expert's, METIS's."""

    @cached_property
    def arrays(self) -> DispatchArrays:
        """Arrays that the rollout reads."""
        merged, u = self.units, self.units.units
        _, layer = np.unique(merged.main_layer, return_inverse=True)
        layers = int(layer.max(initial=-1)) + 1
        total = max(float(u.work.sum()), 1e-300)
        return DispatchArrays(
            u.succ_ptr.astype(np.int64), u.succ.astype(np.int64), u.pred_ptr.astype(np.int64),
            u.pred.astype(np.int64), merged.incoming, merged.seconds, merged.weight, self.capacity,
            merged.upward_rank, np.clip(merged.layer, 0.0, 1.0),
            (np.cumsum(u.work) - u.work) / total,
            merged.backward, u.work, layer.astype(np.int64),
            np.maximum(np.bincount(layer, u.work, layers), 1e-300), self.advice,
        )  # fmt: skip

    def roll_out(self, weights: HeadWeights) -> Dispatched:
        """Return the plans of [B] rollouts."""
        select, place = weights.select, weights.place
        count, units = len(select), self.units.num_units
        count_decoder_calls(count)
        device, order = np.zeros((count, units), np.int16), np.zeros((count, units), np.int32)
        end = np.zeros((count, units))

        def share(rows: range) -> None:
            for i in rows:
                _dispatch(self.arrays, select[i], place[i], device[i], order[i], end[i])

        if units:
            on_threads(share, count)
        return Dispatched(device, order, end)


@njit(cache=True, nogil=True)
@no_type_check
def _dispatch(a, select, place, device, order, end):
    """One rollout with weights ``select`` [F] and ``place`` [G]; fills ``device``, ``order`` and
    ``end`` [U].

    State beside the arrays, over ``U`` units and ``D`` devices:

        free      [D]     end of the last unit of each device
        load      [D]     seconds of work placed
        held      [D]     bytes of weights placed
        link      [D, D]  until when the link to the first index from the second is busy
        born      [U]     when the last producer of a unit ends
        arrival   [U, D]  when a unit's results are on a device
        pull      [U, D]  link seconds of data that a unit finds on a device
        on_layer  [L, D]  seconds of a layer's work there; ``last_on`` [L] device of its last unit
        window    [W]     candidates, ``inside`` of them; the other ready units wait in ``heap``
    """
    devices, count = a.seconds.shape
    layers = len(a.layer_work)
    free, load, held = np.zeros(devices), np.zeros(devices), np.zeros(devices)
    link, busy = np.zeros((devices, devices)), np.zeros(devices)
    born = np.zeros(count)
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
    window, inside = np.zeros(WINDOW, np.int64), np.int64(0)
    heap, waiting = np.zeros(count, np.int64), np.int64(0)
    for u in range(count):
        if missing[u] == 0:
            inside, waiting = join(a.tail, window, inside, heap, waiting, u)
    seen = np.zeros((WINDOW, SELECTED), np.float32)
    shown = np.zeros((devices, PLACED), np.float32)
    start, there, finish = np.zeros(devices), np.zeros(devices), np.zeros(devices)
    possible = np.zeros(devices, np.bool_)
    done, last = 0.0, np.int64(NOWHERE)
    for turn in range(count):
        # Select.
        pick, best = 0, -np.inf
        if inside > 1:
            see_units(a, window, inside, free, born, missing, begun, device, last, unit, longest,
                       seen)  # fmt: skip
            for k in range(inside):
                value = _score(select, seen[k])
                if value > best:
                    best, pick = value, k
        u = window[pick]
        # Place.
        see_devices(a, u, free, load, held, link, busy, end, arrival, pull, need, on_layer,
                     last_on, device, done, total, unit, longest, start, there, finish, possible,
                     shown)  # fmt: skip
        best, where = -np.inf, np.int64(NOWHERE)
        for d in range(devices):
            if possible[d]:
                value = _score(place, shown[d])
                if value > best:
                    best, where = value, d
        device[u] = where
        # The unit takes its place in time.
        for e in range(a.pred_ptr[u], a.pred_ptr[u + 1]):
            p = a.pred[e]
            arrival[p, where] = arrive(p, where, a.traffic[e], end, device, arrival, link[where])
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
            window[inside], waiting = pull_next(a.tail, heap, waiting)
            inside += 1
        for k in range(a.succ_ptr[u], a.succ_ptr[u + 1]):
            v = a.succ[k]
            born[v] = max(born[v], end[u])
            missing[v] -= 1
            for e in range(a.pred_ptr[v], a.pred_ptr[v + 1]):
                if a.pred[e] == u:
                    pull[v, where] += a.traffic[e]
            if missing[v] == 0:
                inside, waiting = join(a.tail, window, inside, heap, waiting, v)


@njit(cache=True, nogil=True)
@no_type_check
def _score(w, x):
    value = 0.0
    for f in range(len(w)):
        value += w[f] * x[f]
    return value
