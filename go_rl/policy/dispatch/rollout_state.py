"""Tables of a rollout of sequential dispatch: what it reads of a problem, and what it keeps.

Letters: ``U`` units, ``D`` devices, ``C`` channels between them, ``Y`` edges between units, ``L``
layers, ``W`` candidates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import no_type_check

import numpy as np
from jaxtyping import Bool, Float32, Float64, Int16, Int32, Int64

from go_rl.core.compiled_struct import CompiledStruct, compiled
from go_rl.objectives.makespan.choices import NOWHERE
from go_rl.objectives.makespan.units import MakespanUnits
from go_rl.policy.dispatch.features import PLACE_FEATURES, SELECT_FEATURES, WINDOW

NOT_SENT = -1.0
"""Arrival time of a tensor where nothing sends it."""
LEAST = 1e-300
"""Least divisor: shares of nothing are 0."""


@dataclass(frozen=True, eq=False)
class DispatchArrays(CompiledStruct):
    """Arrays of a problem that the rollout reads."""

    succ_ptr: Int64[np.ndarray, "rows"]
    """[U + 1] first of each unit's consumers in ``succ``."""
    succ: Int64[np.ndarray, "Y"]
    """[Y] consumers."""
    pred_ptr: Int64[np.ndarray, "rows"]
    """[U + 1] first of each unit's producers in ``pred``."""
    pred: Int64[np.ndarray, "Y"]
    """[Y] producers."""
    traffic: Float64[np.ndarray, "Y"]
    """[Y] seconds of a mean link by edge of ``pred``."""
    scale: Float64[np.ndarray, "D D"]
    """[D, D] factor on these from the first device to the second."""
    extra: Float64[np.ndarray, "D D"]
    """[D, D] seconds to add then."""
    channel: Int64[np.ndarray, "D D"]
    """[D, D] number of what carries one tensor at a time, in `LinkTable`."""
    channels: int
    """Their number."""
    need: Float64[np.ndarray, "U"]
    """[U] link seconds of all operands of a unit."""
    seconds: Float64[np.ndarray, "D U"]
    """[D, U]; inf: not possible."""
    weight: Float64[np.ndarray, "U"]
    """[U] bytes of weights."""
    capacity: Float64[np.ndarray, "D"]
    """[D] bytes of weights that a device holds."""
    tail: Float64[np.ndarray, "U"]
    """[U] seconds from a unit's start to the end, transfers included (upward rank)."""
    depth: Float64[np.ndarray, "U"]
    """[U] layer in 0 to 1."""
    before: Float64[np.ndarray, "U"]
    """[U] share of the work before a unit, by number."""
    backward: Float64[np.ndarray, "U"]
    """[U] share of backward nodes."""
    work: Float64[np.ndarray, "U"]
    """[U] seconds on the fastest device."""
    layer: Int64[np.ndarray, "U"]
    """[U] number of the layer, 0 to L - 1."""
    layer_work: Float64[np.ndarray, "L"]
    """[L] seconds of work in each layer."""
    advice: Int16[np.ndarray, "A U"]
    """[ADVICE, U] device of each unit by placements made beforehand."""
    total: float
    """Seconds of all units."""
    longest: float
    """Largest upward rank, in seconds."""
    mean: float
    """Mean seconds of a unit, in which features show time."""


@dataclass(frozen=True, eq=False)
class RolloutState(CompiledStruct):
    """State of one rollout after some units were placed, and scratch of the next choice."""

    device: Int16[np.ndarray, "U"]
    """[U] device of each placed unit."""
    end: Float64[np.ndarray, "U"]
    """[U] seconds at which it ends."""
    order: Int32[np.ndarray, "U"]
    """[U] units in the order of selection."""
    missing: Int64[np.ndarray, "U"]
    """[U] producers that are not placed yet."""
    born: Float64[np.ndarray, "U"]
    """[U] seconds at which the last placed producer ends."""
    arrival: Float64[np.ndarray, "U D"]
    """[U, D] seconds at which a unit's results are on a further device, or `NOT_SENT`."""
    pull: Float64[np.ndarray, "U D"]
    """[U, D] link seconds of data that a unit finds on a device."""
    free: Float64[np.ndarray, "D"]
    """[D] end of the last unit of each device."""
    load: Float64[np.ndarray, "D"]
    """[D] seconds of work placed."""
    held: Float64[np.ndarray, "D"]
    """[D] bytes of weights placed."""
    link: Float64[np.ndarray, "C"]
    """[C] seconds until which each channel is busy."""
    on_layer: Float64[np.ndarray, "L D"]
    """[L, D] seconds of a layer's work on a device."""
    begun: Float64[np.ndarray, "L"]
    """[L] seconds of a layer's work on any device."""
    last_on: Int64[np.ndarray, "L"]
    """[L] device of the layer's last unit, or `NOWHERE`."""
    window: Int64[np.ndarray, "W"]
    """[W] candidates: the ready units of highest rank."""
    heap: Int64[np.ndarray, "U"]
    """[U] the other ready units, as a binary heap, the highest rank first."""
    candidates: Int64[np.ndarray, "1"]
    """[1] units in ``window``."""
    waiting: Int64[np.ndarray, "1"]
    """[1] units in ``heap``."""
    seen: Float32[np.ndarray, "W F"]
    """[W, F] `SELECT_FEATURES` of the candidates."""
    shown: Float32[np.ndarray, "D G"]
    """[D, G] `PLACE_FEATURES` of the selected unit on each device."""
    possible: Bool[np.ndarray, "D"]
    """[D] devices that it may go to."""
    lasting: Float64[np.ndarray, "D"]
    """[D] seconds that it takes there."""
    there: Float64[np.ndarray, "D"]
    """[D] seconds at which its operands are there."""
    start: Float64[np.ndarray, "D"]
    """[D] seconds at which it could start there."""
    finish: Float64[np.ndarray, "D"]
    """[D] seconds at which it would end there."""
    busy: Float64[np.ndarray, "C"]
    """[C] ``link`` during a trial."""


def dispatch_arrays(
    merged: MakespanUnits, capacity: Float64[np.ndarray, "D"], advice: Int16[np.ndarray, "A U"]
) -> DispatchArrays:
    """Return the arrays of a problem with ``capacity`` [D] bytes of weights on each device, and
    [ADVICE, U] devices of placements made beforehand."""
    u, count = merged.units, merged.num_units
    _, layer = np.unique(merged.main_layer, return_inverse=True)
    layers = int(layer.max(initial=-1)) + 1
    done = np.cumsum(u.work)
    total = max(float(done[-1]) if count else 0.0, LEAST)
    reader = np.repeat(np.arange(count), np.diff(u.pred_ptr))
    return DispatchArrays(
        succ_ptr=u.succ_ptr.astype(np.int64), succ=u.succ.astype(np.int64),
        pred_ptr=u.pred_ptr.astype(np.int64), pred=u.pred.astype(np.int64),
        traffic=merged.incoming, scale=merged.links.scale, extra=merged.links.extra,
        channel=merged.links.channel, channels=merged.links.channels,
        need=np.bincount(reader, merged.incoming, count).astype(float),
        seconds=merged.seconds, weight=merged.weight, capacity=capacity,
        tail=merged.upward_rank, depth=np.clip(merged.layer, 0.0, 1.0),
        before=(done - u.work) / total, backward=merged.backward, work=u.work,
        layer=layer.astype(np.int64),
        layer_work=np.maximum(np.bincount(layer, u.work, layers), LEAST), advice=advice,
        total=total, longest=max(float(merged.upward_rank.max(initial=0.0)), LEAST),
        mean=total / max(count, 1),
    )  # fmt: skip


def new_state(a: DispatchArrays) -> RolloutState:
    """Return room for a rollout; `clear` begins one."""
    devices, units = a.seconds.shape
    seen, shown = len(SELECT_FEATURES), len(PLACE_FEATURES)
    sizes = {"D": devices, "U": units, "L": len(a.layer_work), "W": WINDOW, "F": seen, "G": shown,
             "C": a.channels}  # fmt: skip
    return RolloutState.zeros(sizes)


@compiled
@no_type_check
def clear(a, s) -> None:
    """Forget the rollout before: nothing is placed, nothing ready."""
    s.born[:], s.arrival[:], s.pull[:] = 0.0, NOT_SENT, 0.0
    s.free[:], s.load[:], s.held[:], s.link[:] = 0.0, 0.0, 0.0, 0.0
    s.on_layer[:], s.begun[:], s.last_on[:] = 0.0, 0.0, NOWHERE
    s.candidates[0], s.waiting[0] = 0, 0
    for u in range(len(a.work)):
        s.missing[u] = a.pred_ptr[u + 1] - a.pred_ptr[u]
