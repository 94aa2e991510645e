"""Dynamic programming over the cuts of one linear order.

A stage is a contiguous piece of the order. Position i may be cut when the tensors that cross it
keep the link busy for at most T; with the triangle rule, a tensor that crosses one cut must be
consumed before the next. For a given T the fewest stages follow in one sweep, or one sweep for each
chip where chips differ; the smallest T is found by bisection.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, no_type_check

import numpy as np
from jaxtyping import Float64, Int16, Int32

from go_rl.core.compiled_struct import compiled
from go_rl.objectives.common.units import RingUnits
from go_rl.runtime.decoder_calls import count_decoder_calls

NO_STAGE = np.int64(1 << 20)
"""More stages than any hardware has chips: not reachable."""


@dataclass(frozen=True, eq=False)
class UnequalChips:
    """Chips of a ring that differ: ``k`` chips of ``K`` kinds, ``U`` units."""

    kind: Int16[np.ndarray, "k"]
    """[k] kind of each chip."""
    work: Float64[np.ndarray, "K U"]
    """[K, U] seconds of each unit on each kind; finite, far too many where a kind cannot run it."""
    room: Float64[np.ndarray, "K"]
    """[K] bytes of weights that a chip of the kind holds, over what the smallest one holds."""


@compiled
@no_type_check
def _profile(order, tensors, succ_ptr, succ, triangle, place, delta, following) -> None:
    """Write [U + 2] what each position adds to the seconds on the link, and [U + 1] the first
    position of the next cut; [U] ``place`` is scratch, ``delta`` holds zeros."""
    tensor_seconds, source, use_ptr, user = tensors
    units = len(order)
    for i in range(units):
        place[order[i]] = i
    for t in range(len(tensor_seconds)):
        last = place[source[t]]
        first = last
        for j in range(use_ptr[t], use_ptr[t + 1]):
            last = max(last, place[user[j]])
        delta[first + 1] += tensor_seconds[t]
        delta[last + 1] -= tensor_seconds[t]
    reach = 0
    for i in range(units + 1):
        following[i] = max(i + 1, reach + 1) if triangle and reach >= i and i > 0 else i + 1
        if i < units:
            for j in range(succ_ptr[order[i]], succ_ptr[order[i] + 1]):
                reach = max(reach, place[succ[j]])


@compiled
@no_type_check
def _earliest(load, held, seconds, weight_limit, first) -> None:
    """Write [U + 1] the first position from which a stage may reach each; from prefix sums."""
    i = 0
    for j in range(len(load)):
        while i < j and (load[j] - load[i] > seconds or held[j] - held[i] > weight_limit):
            i += 1
        first[j] = i


@compiled
@no_type_check
def _fewest(first, crossing, following, seconds, fewest, come_from, queue) -> None:
    """Write [U + 1] the fewest stages that end before each position, and the previous cut.

    The cuts before a position form a window that only moves forward: its minimum is kept in a
    queue, the earliest cut among equals in front.
    """
    units = len(first) - 1
    fewest[0] = 0
    head, tail, entered = 0, 0, 0
    for j in range(1, units + 1):
        fewest[j] = NO_STAGE
        while entered < j and (following[entered] <= j or j == units):
            if fewest[entered] < NO_STAGE:
                while tail > head and fewest[queue[tail - 1]] > fewest[entered]:
                    tail -= 1
                queue[tail] = entered
                tail += 1
            entered += 1
        while head < tail and queue[head] < first[j]:
            head += 1
        if head < tail and (j == units or crossing[j] <= seconds):
            fewest[j] = fewest[queue[head]] + 1
            come_from[j] = queue[head]


@compiled
@no_type_check
def _by_stage(first, kind, crossing, following, seconds, back) -> None:
    """Write [stages + 1, U + 1] the previous cut of a way to end stage s at each position; what
    cannot be had keeps -1. ``first`` [K, U + 1] by [stages] ``kind``."""
    units = len(crossing) - 1
    back[0, 0] = 0
    for s in range(len(back) - 1):
        i, begins = 0, first[kind[s]]
        for j in range(1, units + 1):
            if j < units and crossing[j] > seconds:
                continue
            i = max(i, begins[j])
            while i < j and back[s, i] < 0:
                i += 1
            if i < j and (j == units or following[i] <= j):
                back[s + 1, j] = i


def compiled_of_cuts() -> tuple[Any, ...]:
    """Return the compiled functions of cut orders."""
    return _profile, _earliest, _fewest, _by_stage


class LinearCuts:
    """Cuts of one order of a ring problem's units; stage i is on chip i, where chips differ."""

    def __init__(
        self, units: RingUnits, order: Int32[np.ndarray, "U"], triangle: bool,
        unequal: UnequalChips | None = None,
    ) -> None:  # fmt: skip
        self.units = units
        self.order = order
        self._unequal = unequal
        tensors = (units.tensor_seconds, units.tensor_source, units.use_ptr, units.user)
        count = len(order)
        delta, self.following = np.zeros(count + 2), np.empty(count + 1, np.int64)
        place = np.empty(count, np.int64)
        _profile(order, tensors, units.succ_ptr, units.succ, triangle, place, delta,
                 self.following)  # fmt: skip
        crossing = np.cumsum(delta)[: count + 1]
        # What is left of a sum after everything was taken away is rounding, not traffic.
        carries = crossing > 1e-12 * crossing.max()
        self.crossing = np.where(carries, crossing + units.latency, 0.0)
        work = units.work[None] if unequal is None else unequal.work
        self._load = np.zeros((len(work), count + 1))
        np.cumsum(work[:, order], axis=1, out=self._load[:, 1:])
        self._held = np.concatenate([[0.0], np.cumsum(units.weight[order])])

    def stages(
        self, seconds: float, chips: int, weight: float, exactly: bool = False
    ) -> Int32[np.ndarray, "U"] | None:
        """Return [U] the stage of each unit with largest stage and link ``seconds``, or None.

        ``exactly``: use every chip.
        """
        limit, units = seconds * (1 + 1e-12), len(self.order)
        first = self._first(limit, weight)
        if exactly or self._unequal is not None:
            kind = np.zeros(chips, np.int16) if self._unequal is None else self._unequal.kind
            back = np.full((chips + 1, units + 1), -1, np.int32)
            _by_stage(first, kind, self.crossing, self.following, limit, back)
            ends = np.flatnonzero(back[:, units] >= 0)
            if not len(ends) or (exactly and ends[-1] < chips):
                return None
            cuts, at = [units], units
            for s in range(chips if exactly else int(ends[0]), 0, -1):
                at = int(back[s, at])
                cuts.append(at)
        else:
            fewest, come_from, queue = np.zeros((3, units + 1), np.int64)
            _fewest(first[0], self.crossing, self.following, limit, fewest, come_from, queue)
            if fewest[units] > chips:
                return None
            cuts, at = [units], units
            while at > 0:
                at = int(come_from[at])
                cuts.append(at)
        cuts.reverse()
        stage = np.zeros(units, np.int32)
        stage[self.order] = np.repeat(np.arange(len(cuts) - 1), np.diff(cuts))
        return stage

    def _first(self, seconds: float, weight: float) -> np.ndarray:
        """[K, U + 1] first position from which a stage on a chip of each kind may reach each."""
        first = np.zeros((len(self._load), len(self.order) + 1), np.int64)
        for kind, load in enumerate(self._load):
            room = 1.0 if self._unequal is None else float(self._unequal.room[kind])
            _earliest(load, self._held, seconds, weight * room, first[kind])
        return first

    def best(
        self,
        low: float,
        high: float,
        chips: int,
        weight: float,
        exactly: bool = False,
        tolerance: float = 1e-4,
    ) -> tuple[float, Int32[np.ndarray, "U"] | None]:
        """Return the smallest T in (low, high] (within ``tolerance``) and its [U] stages; None when
        even ``high`` cannot be had."""
        count_decoder_calls()
        found = self.stages(high, chips, weight, exactly)
        if found is None:
            return high, None
        high = min(high, self.value(found))
        while high > low * (1 + tolerance):
            middle = 0.5 * (low + high)
            stage = self.stages(middle, chips, weight, exactly)
            if stage is None:
                low = middle
            else:
                found, high = stage, min(middle, self.value(stage))
        return high, found

    def value(self, stage: Int32[np.ndarray, "U"]) -> float:
        """Return the largest stage or link of [U] stages, seconds."""
        work = self.units.work
        if self._unequal is not None:
            work = self._unequal.work[self._unequal.kind[stage], np.arange(len(stage))]
        loads: Float64[np.ndarray, "chips"] = np.bincount(stage, work)
        cuts = np.flatnonzero(np.diff(stage[self.order])) + 1
        return float(max(loads.max(), self.crossing[cuts].max(initial=0.0)))
