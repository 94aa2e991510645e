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

from go_rl.core.compiled_struct import compiled
from go_rl.objectives.makespan.choices import NOWHERE
from go_rl.objectives.makespan.units import MakespanUnits
from go_rl.policy.dispatch.features import HeadWeights
from go_rl.policy.dispatch.observations import arrive, see_devices, see_units
from go_rl.policy.dispatch.ready_units import join, leave
from go_rl.policy.dispatch.rollout_state import DispatchArrays, clear, dispatch_arrays, new_state
from go_rl.runtime.decoder_calls import count_decoder_calls
from go_rl.runtime.threads import on_threads


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
        return dispatch_arrays(self.units, self.capacity, self.advice)

    def roll_out(self, weights: HeadWeights) -> Dispatched:
        """Return the plans of [B] rollouts."""
        select, place = weights.select, weights.place
        count, units = len(select), self.units.num_units
        count_decoder_calls(count)
        device, order = np.zeros((count, units), np.int16), np.zeros((count, units), np.int32)
        end = np.zeros((count, units))

        def share(rows: range) -> None:
            state = new_state(self.arrays)
            for i in rows:
                _dispatch(self.arrays, state, select[i], place[i])
                device[i], order[i], end[i] = state.device, state.order, state.end

        if units:
            on_threads(share, count)
        return Dispatched(device, order, end)


@compiled
@no_type_check
def _dispatch(a, s, select, place) -> None:
    """One rollout with weights ``select`` [F] and ``place`` [G]; its plan is left in ``s``."""
    clear(a, s)
    for u in range(len(a.work)):
        if s.missing[u] == 0:
            join(a, s, u)
    done, last = 0.0, np.int64(NOWHERE)
    for turn in range(len(a.work)):
        pick = _select(a, s, select, last)
        u = s.window[pick]
        see_devices(a, s, u, done)
        where = _best(place, s.shown, s.possible)
        _put(a, s, u, where)
        leave(a, s, pick)
        _set_free(a, s, u, where)
        done += a.work[u]
        s.order[turn], last = u, u


@compiled
@no_type_check
def _select(a, s, w, last):
    """Place in the window of the candidate with the highest score, the first of equal ones."""
    pick, best = 0, -np.inf
    if s.candidates[0] > 1:
        see_units(a, s, last)
        for k in range(s.candidates[0]):
            score = _score(w, s.seen[k])
            if score > best:
                best, pick = score, k
    return pick


@compiled
@no_type_check
def _best(w, x, possible):
    """Possible device with the highest score, the first of equal ones."""
    best, where = -np.inf, np.int64(NOWHERE)
    for d in range(len(possible)):
        if possible[d]:
            score = _score(w, x[d])
            if score > best:
                best, where = score, d
    return where


@compiled
@no_type_check
def _put(a, s, u, where) -> None:
    """The unit and the transfers of its operands take their places in time."""
    for e in range(a.pred_ptr[u], a.pred_ptr[u + 1]):
        p = a.pred[e]
        s.arrival[p, where] = arrive(a, s, e, where, s.link)
    group = a.layer[u]
    s.device[u], s.end[u], s.free[where] = where, s.finish[where], s.finish[where]
    s.load[where] += s.lasting[where]
    s.held[where] += a.weight[u]
    s.on_layer[group, where] += a.work[u]
    s.begun[group] += a.work[u]
    s.last_on[group] = where


@compiled
@no_type_check
def _set_free(a, s, u, where) -> None:
    """Consumers of a unit that was placed find its results; some become ready."""
    for k in range(a.succ_ptr[u], a.succ_ptr[u + 1]):
        v = a.succ[k]
        s.born[v] = max(s.born[v], s.end[u])
        s.missing[v] -= 1
        for e in range(a.pred_ptr[v], a.pred_ptr[v + 1]):
            if a.pred[e] == u:
                s.pull[v, where] += a.traffic[e]
        if s.missing[v] == 0:
            join(a, s, v)


@compiled
@no_type_check
def _score(w, x):
    value = 0.0
    for f in range(len(w)):
        value += w[f] * x[f]
    return value
