"""Stages of several chips: what a linear order offers beyond one chip after the other.

Under the triangle rule a stage may take several chips when no edge joins them: all chip paths
between two stages are then equally long, and no triangle can close. So a piece of the order whose
units fall apart into components (the branches of a star, the towers of a block) is packed into as
many chips as it needs. For a given T the fewest chips follow from dynamic programming over the
cuts; a piece grows unit by unit, its components are packed first-fit, and one that outgrows its
chip moves to the next with room. Links inside a stage are not counted here: pricing does that.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import no_type_check

import numpy as np
from jaxtyping import Float64, Int32, Int64

from go_rl.core.compiled_struct import CompiledStruct, compiled
from go_rl.objectives.common.units import RingUnits
from go_rl.objectives.ring.linear_cuts import NO_STAGE, LinearCuts

MOST_UNITS = 4000
"""Units up to which this pays: the work is quadratic in their number."""
TOLERANCE = 1e-3
"""Relative step at which the bisection over T stops."""


@dataclass(frozen=True, eq=False)
class Piece(CompiledStruct):
    """Components of one piece of the order, and the chips that they are packed into."""

    order: Int64[np.ndarray, "U"]
    """[U] units in their order."""
    place: Int64[np.ndarray, "U"]
    """[U] where each unit stands."""
    parent: Int64[np.ndarray, "U"]
    """[U] union-find parent of each unit; a root is its own."""
    load: Float64[np.ndarray, "U"]
    """[U] seconds of the component of each root."""
    held: Float64[np.ndarray, "U"]
    """[U] bytes of weights of the component of each root."""
    chip: Int64[np.ndarray, "U"]
    """[U] chip of the component of each root, from 0 in every piece."""
    chip_load: Float64[np.ndarray, "k"]
    """[k] seconds of each chip."""
    chip_held: Float64[np.ndarray, "k"]
    """[k] bytes of weights on each chip."""
    parts: Int64[np.ndarray, "k"]
    """[k] components on each chip."""


@dataclass(frozen=True, eq=False)
class Room(CompiledStruct):
    """Limits of every chip and link."""

    seconds: float
    weight: float
    """Bytes of weights."""
    chips: int
    """Number of chips k."""


def new_piece(order: Int32[np.ndarray, "U"], chips: int) -> Piece:
    """Allocate the scratch of an order."""
    count = len(order)
    place = np.empty(count, np.int64)
    place[order] = np.arange(count)
    ids, seconds = np.zeros((2, count), np.int64), np.zeros((2, count))
    loads = np.zeros((2, chips))
    return Piece(
        order=order.astype(np.int64), place=place, parent=ids[0], load=seconds[0], held=seconds[1],
        chip=ids[1], chip_load=loads[0], chip_held=loads[1], parts=np.zeros(chips, np.int64),
    )  # fmt: skip


@compiled
@no_type_check
def _clear(p: Piece) -> None:
    for c in range(len(p.parts)):
        p.parts[c] = 0
        p.chip_load[c] = 0.0
        p.chip_held[c] = 0.0


@compiled
@no_type_check
def _root(p: Piece, x: int) -> int:
    parent = p.parent
    while parent[x] != x:
        parent[x] = parent[parent[x]]
        x = parent[x]
    return x


@compiled
@no_type_check
def _remove(p: Piece, x: int, used: int) -> int:
    """Take a component from its chip; return the chips in use."""
    c = p.chip[x]
    p.chip_load[c] -= p.load[x]
    p.chip_held[c] -= p.held[x]
    p.parts[c] -= 1
    if p.parts[c] > 0:
        return used
    p.chip_load[c], p.chip_held[c] = 0.0, 0.0
    return used - 1


@compiled
@no_type_check
def _place(p: Piece, x: int, room: Room, left: int, used: int) -> int:
    """Put a component on the first chip with room, else on an empty one; return the chips in use,
    or `NO_STAGE` where that would be more than ``left``."""
    empty = -1
    for c in range(len(p.parts)):
        if p.parts[c] == 0:
            empty = c if empty < 0 else empty
            continue
        fits = p.chip_load[c] + p.load[x] <= room.seconds
        if fits and p.chip_held[c] + p.held[x] <= room.weight:
            empty = c
            used -= 1
            break
    if empty < 0 or used + 1 > left:
        return NO_STAGE
    p.chip[x] = empty
    p.chip_load[empty] += p.load[x]
    p.chip_held[empty] += p.held[x]
    p.parts[empty] += 1
    return used + 1


@compiled
@no_type_check
def _add(units: RingUnits, p: Piece, begin: int, x: int, room: Room, left: int, used: int) -> int:
    """Add a unit to the piece that opens at ``begin``; return the chips in use, or `NO_STAGE`."""
    root = np.int64(-1)
    p.parent[x], p.load[x], p.held[x] = x, units.work[x], units.weight[x]
    for i in range(units.pred_ptr[x], units.pred_ptr[x + 1]):
        y = np.int64(units.pred[i])
        if p.place[y] < begin:
            continue
        y = _root(p, y)
        if y == root:
            continue
        if root < 0:
            root, y = y, x
        else:
            used = _remove(p, y, used)
        p.parent[y] = root
        p.load[root] += p.load[y]
        p.held[root] += p.held[y]
        p.chip_load[p.chip[root]] += p.load[y]
        p.chip_held[p.chip[root]] += p.held[y]
    if root < 0:
        root = x
        if p.load[x] > room.seconds or p.held[x] > room.weight:
            return NO_STAGE
        return _place(p, x, room, left, used)
    if p.load[root] > room.seconds or p.held[root] > room.weight:
        return NO_STAGE
    c = p.chip[root]
    if p.chip_load[c] <= room.seconds and p.chip_held[c] <= room.weight:
        return used
    return _place(p, root, room, left, _remove(p, root, used))


@compiled
@no_type_check
def _fewest(units: RingUnits, p: Piece, room: Room, crossing, following, fewest, come_from) -> None:
    """Write [U + 1] the fewest chips that hold all before each position, and the previous cut."""
    count, rest = len(p.order), 0.0
    for j in range(count + 1):
        fewest[j] = NO_STAGE
    for j in range(count):
        rest += units.work[p.order[j]]
    fewest[0] = 0
    for i in range(count):
        left = room.chips - fewest[i]
        # All that follows must fit on the chips that are left.
        hopeless = rest > left * room.seconds * (1 + 1e-9)
        rest -= units.work[p.order[i]]
        if left <= 0 or hopeless:
            continue
        _clear(p)
        used = np.int64(0)
        for j in range(i + 1, count + 1):
            used = _add(units, p, i, p.order[j - 1], room, left, used)
            if used == NO_STAGE:
                break
            closed = j == count or (crossing[j] <= room.seconds and following[i] <= j)
            if closed and fewest[i] + used < fewest[j]:
                fewest[j] = fewest[i] + used
                come_from[j] = i


@compiled
@no_type_check
def _write(units: RingUnits, p: Piece, room: Room, begin: int, end: int, base: int, stage) -> int:
    """Write the chips of one piece, numbered from ``base``; return how many."""
    _clear(p)
    used = np.int64(0)
    for j in range(begin, end):
        used = _add(units, p, begin, p.order[j], room, room.chips, used)
    for j in range(begin, end):
        c, number = p.chip[_root(p, p.order[j])], base
        for other in range(c):
            number += p.parts[other] > 0
        stage[p.order[j]] = number
    return used


class SideBySide:
    """The cuts of one order into pieces of several chips each."""

    def __init__(self, cuts: LinearCuts, chips: int) -> None:
        self._cuts, self._chips = cuts, chips
        self._piece = new_piece(cuts.order, chips)

    def stages(self, seconds: float, weight: float) -> Int32[np.ndarray, "U"] | None:
        """Return the [U] chip of each unit, none busier than ``seconds`` and no cut either, with
        at most ``weight`` bytes a chip, or None."""
        cuts, count = self._cuts, len(self._cuts.order)
        room = Room(seconds * (1 + 1e-12), weight, self._chips)
        fewest, come_from = np.zeros((2, count + 1), np.int64)
        _fewest(cuts.units, self._piece, room, cuts.crossing, cuts.following, fewest, come_from)
        if fewest[count] > self._chips:
            return None
        ends = [count]
        while ends[-1] > 0:
            ends.append(int(come_from[ends[-1]]))
        ends.reverse()
        stage, base = np.zeros(count, np.int32), 0
        for begin, end in pairwise(ends):
            base += _write(cuts.units, self._piece, room, begin, end, base, stage)
        return stage

    def best(
        self, low: float, high: float, weight: float, tolerance: float = TOLERANCE
    ) -> tuple[float, Int32[np.ndarray, "U"] | None]:
        """Return the smallest T in (low, high] (within ``tolerance``) and its [U] chips; None when
        even ``high`` cannot be had."""
        found = self.stages(high, weight)
        while found is not None and high > low * (1 + tolerance):
            middle = 0.5 * (low + high)
            stage = self.stages(middle, weight)
            if stage is None:
                low = middle
            else:
                found, high = stage, middle
        return high, found
