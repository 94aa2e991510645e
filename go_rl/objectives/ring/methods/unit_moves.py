"""Compiled annealing moves: units go to other chips of the ring, and loads follow by differences.

| state | shape | meaning |
|---|---|---|
| ``chip`` | [U] | chip of each unit |
| ``load``, ``held``, ``count`` | [k] | seconds of work, bytes of weights, units |
| ``traffic`` | [k] | seconds of tensors on the link behind each chip |
| ``joined`` | [k, k] | edges between units of each pair of chips |
| ``best`` | [U] | chips of the fastest legal state so far |
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import no_type_check

import numpy as np
from jaxtyping import Float64, Int32, Int64, UInt64

from go_rl.core.bitset import bit
from go_rl.core.compiled_struct import CompiledStruct, compiled
from go_rl.core.graph.condensation import sorted_rows
from go_rl.objectives.ring.workspace import RingWorkspace
from go_rl.solvers.tree_search import next_uniform

LARGEST_MOVE = 400
"""Units that one move may take along."""
FROM_BUSIEST = 0.5
"""Share of the moves that start on the chip, or beside the link, that sets the pace."""
BESIDE_A_NEIGHBOUR = 0.4
"""Share of the moves to the chip of a neighbour, however far, instead of the next chip."""


@dataclass(frozen=True, eq=False)
class MoveArrays(CompiledStruct):
    """Arrays of a problem that the moves read; see `RingUnits`."""

    seconds: Float64[np.ndarray, "k U"]
    """[k, U] seconds of each unit on each chip."""
    weight: Float64[np.ndarray, "U"]
    domain: Int64[np.ndarray, "U"]
    """[U] set of chips that a unit may be on: pins and kinds that cannot run it leave some out."""
    limit: Float64[np.ndarray, "k"]
    """[k] bytes of weights that a chip may hold."""
    pred_ptr: Int64[np.ndarray, "P"]
    pred: Int32[np.ndarray, "Y"]
    succ_ptr: Int64[np.ndarray, "P"]
    succ: Int32[np.ndarray, "Y"]
    tensor_seconds: Float64[np.ndarray, "X"]
    tensor_source: Int32[np.ndarray, "X"]
    use_ptr: Int64[np.ndarray, "Q"]
    user: Int32[np.ndarray, "Z"]
    touch_ptr: Int64[np.ndarray, "P"]
    touch: Int32[np.ndarray, "W"]
    """Tensors that each unit makes or reads."""
    latency: float
    triangle: bool
    all_chips: bool


@dataclass(frozen=True, eq=False)
class UnitMoveState(CompiledStruct):
    """State that the moves write."""

    chip: Int64[np.ndarray, "U"]
    load: Float64[np.ndarray, "k"]
    held: Float64[np.ndarray, "k"]
    traffic: Float64[np.ndarray, "k"]
    count: Int64[np.ndarray, "k"]
    joined: Int64[np.ndarray, "k k"]
    best: Int64[np.ndarray, "U"]
    moved: Int64[np.ndarray, "U"]
    """[U] scratch: units of the move."""
    origin: Int64[np.ndarray, "U"]
    """[U] scratch: their chips before it."""
    seen_unit: Int64[np.ndarray, "U"]
    """[U] scratch: the last move that took each unit along."""
    seen_tensor: Int64[np.ndarray, "X"]
    """[X] scratch: the last count that touched each tensor."""
    tensors: Int64[np.ndarray, "X"]
    """[X] scratch: tensors of the move."""
    reach: Int64[np.ndarray, "k"]
    """[k] scratch: set of chips that can be reached from each."""
    stamp: Int64[np.ndarray, "1"]
    random: UInt64[np.ndarray, "1"]
    seconds: Float64[np.ndarray, "2"]
    """[2] of the fastest legal state, and of the present one."""


def move_arrays(workspace: RingWorkspace, squeeze: float) -> MoveArrays:
    """Lay out a problem; ``squeeze`` is the share of each chip's memory that weights may take."""
    problem, units = workspace.problem, workspace.units
    of_node = workspace.unit_of_node
    held = of_node >= 0
    seconds = np.zeros((len(problem.hardware.devices), units.num_units))
    for c, kind in enumerate(problem.device_kind):
        np.add.at(seconds[c], of_node[held], problem.seconds[kind][held])
    unit_of = units.unit_of
    domain = np.full(units.num_units, -1)
    domain[unit_of[unit_of >= 0]] = workspace.solver.instance.net.start[unit_of >= 0]
    limit = np.array([chip.memory_bytes for chip in problem.hardware.devices]) * squeeze
    tensor = np.repeat(np.arange(len(units.tensor_source)), np.diff(units.use_ptr))
    ends = np.concatenate([units.tensor_source, units.user])
    which = np.concatenate([np.arange(len(units.tensor_source)), tensor])
    touch_ptr, touch = sorted_rows(ends.astype(np.int64), which.astype(np.int64), units.num_units)
    return MoveArrays(
        seconds=seconds,
        weight=units.weight,
        domain=domain,
        limit=limit if problem.memory else np.full(len(limit), np.inf),
        pred_ptr=units.pred_ptr.astype(np.int64),
        pred=units.pred,
        succ_ptr=units.succ_ptr.astype(np.int64),
        succ=units.succ,
        tensor_seconds=units.tensor_seconds,
        tensor_source=units.tensor_source,
        use_ptr=units.use_ptr,
        user=units.user,
        touch_ptr=touch_ptr.astype(np.int64),
        touch=touch.astype(np.int32),
        latency=units.latency,
        triangle=problem.rules.triangle,
        all_chips=problem.all_chips,
    )


def move_state(arrays: MoveArrays, chip: Int64[np.ndarray, "U"], seed: int) -> UnitMoveState:
    """Return the state of a legal plan."""
    chips, count = arrays.seconds.shape
    state = UnitMoveState(
        chip=chip.astype(np.int64),
        load=np.zeros(chips),
        held=np.zeros(chips),
        traffic=np.zeros(chips),
        count=np.zeros(chips, np.int64),
        joined=np.zeros((chips, chips), np.int64),
        best=chip.astype(np.int64).copy(),
        moved=np.zeros(count, np.int64),
        origin=np.zeros(count, np.int64),
        seen_unit=np.full(count, -1),
        seen_tensor=np.full(len(arrays.tensor_source), -1),
        tensors=np.zeros(len(arrays.tensor_source), np.int64),
        reach=np.zeros(chips, np.int64),
        stamp=np.zeros(1, np.int64),
        random=np.array([(seed * 0x9E3779B97F4A7C15 + 0xD1B54A32D192ED03) % 2**64], np.uint64),
        seconds=np.array([np.inf, np.inf]),
    )
    _count_all(arrays, state)
    return state


@compiled
@no_type_check
def _carry(a: MoveArrays, s: UnitMoveState, t: int, sign: float) -> None:
    """Add (or take away) a tensor's seconds on the links behind its source up to its readers."""
    home = s.chip[a.tensor_source[t]]
    far = home
    for i in range(a.use_ptr[t], a.use_ptr[t + 1]):
        far = max(far, s.chip[a.user[i]])
    for c in range(home, far):
        s.traffic[c] += sign * a.tensor_seconds[t]


@compiled
@no_type_check
def _count_all(a: MoveArrays, s: UnitMoveState) -> None:
    for c in range(len(s.load)):
        s.load[c] = s.held[c] = s.traffic[c] = 0.0
        s.count[c] = 0
        for d in range(len(s.load)):
            s.joined[c, d] = 0
    for u in range(len(s.chip)):
        c = s.chip[u]
        s.load[c] += a.seconds[c, u]
        s.held[c] += a.weight[u]
        s.count[c] += 1
        for i in range(a.succ_ptr[u], a.succ_ptr[u + 1]):
            s.joined[c, s.chip[a.succ[i]]] += 1
    for t in range(len(a.tensor_source)):
        _carry(a, s, t, 1.0)


@compiled
@no_type_check
def _gather(a: MoveArrays, s: UnitMoveState, unit: int, target: int) -> int:
    """List the unit and all that must go along so that data flows upwards; 0: too many, or one of
    them may not be there."""
    stamp = s.stamp[0] + 1
    s.stamp[0] = stamp
    forward = target > s.chip[unit]
    s.moved[0] = unit
    s.seen_unit[unit] = stamp
    size, at = 1, 0
    while at < size:
        v = s.moved[at]
        at += 1
        if a.domain[v] & bit(target) == 0:
            return 0
        if forward:
            for i in range(a.succ_ptr[v], a.succ_ptr[v + 1]):
                w = a.succ[i]
                if s.chip[w] < target and s.seen_unit[w] != stamp:
                    s.seen_unit[w] = stamp
                    if size == LARGEST_MOVE:
                        return 0
                    s.moved[size] = w
                    size += 1
        else:
            for i in range(a.pred_ptr[v], a.pred_ptr[v + 1]):
                w = a.pred[i]
                if s.chip[w] > target and s.seen_unit[w] != stamp:
                    s.seen_unit[w] = stamp
                    if size == LARGEST_MOVE:
                        return 0
                    s.moved[size] = w
                    size += 1
    return size


@compiled
@no_type_check
def _place(a: MoveArrays, s: UnitMoveState, v: int, target: int) -> None:
    """Put a unit on a chip: everything but traffic follows."""
    c = s.chip[v]
    s.load[c] -= a.seconds[c, v]
    s.held[c] -= a.weight[v]
    s.count[c] -= 1
    s.load[target] += a.seconds[target, v]
    s.held[target] += a.weight[v]
    s.count[target] += 1
    for i in range(a.succ_ptr[v], a.succ_ptr[v + 1]):
        d = s.chip[a.succ[i]]
        s.joined[c, d] -= 1
        s.joined[target, d] += 1
    for i in range(a.pred_ptr[v], a.pred_ptr[v + 1]):
        d = s.chip[a.pred[i]]
        s.joined[d, c] -= 1
        s.joined[d, target] += 1
    s.chip[v] = target


@compiled
@no_type_check
def _tensors_of(a: MoveArrays, s: UnitMoveState, size: int) -> int:
    """List the tensors that the units of a move make or read."""
    stamp, found = s.stamp[0], 0
    for j in range(size):
        v = s.moved[j]
        for i in range(a.touch_ptr[v], a.touch_ptr[v + 1]):
            t = a.touch[i]
            if s.seen_tensor[t] != stamp:
                s.seen_tensor[t] = stamp
                s.tensors[found] = t
                found += 1
    return found


@compiled
@no_type_check
def _legal(a: MoveArrays, s: UnitMoveState) -> bool:
    """Whether weights fit, no chip is skipped and no pair of chips has a second, longer way."""
    chips, ended = len(s.load), False
    for c in range(chips):
        if s.held[c] > a.limit[c]:
            return False
        if s.count[c] == 0:
            if a.all_chips:
                return False
            ended = True
        elif ended:
            return False
    if not a.triangle:
        return True
    for c in range(chips - 1, -1, -1):
        direct, onward = np.int64(0), np.int64(0)
        for d in range(c + 1, chips):
            if s.joined[c, d] > 0:
                direct |= bit(d)
                onward |= s.reach[d]
        if direct & onward:
            return False
        s.reach[c] = direct | onward
    return True


@compiled
@no_type_check
def _energy(a: MoveArrays, s: UnitMoveState, power: float) -> float:
    """Log of the ``power``-norm of all loads and links; keep the largest of them."""
    worst = 0.0
    for c in range(len(s.load)):
        worst = max(worst, s.load[c])
        if s.traffic[c] > 1e-15:
            worst = max(worst, s.traffic[c] + a.latency)
    s.seconds[1] = worst
    worst = max(worst, 1e-300)
    total = 0.0
    for c in range(len(s.load)):
        total += (s.load[c] / worst) ** power
        if s.traffic[c] > 1e-15:
            total += ((s.traffic[c] + a.latency) / worst) ** power
    return np.log(worst) + np.log(total) / power


@compiled
@no_type_check
def _start_of_move(a: MoveArrays, s: UnitMoveState) -> int:
    """A unit, half of the time one of the chip or beside the link that sets the pace."""
    count = len(s.chip)
    unit = np.int64(next_uniform(s.random) * count)
    if next_uniform(s.random) >= FROM_BUSIEST:
        return unit
    chip, most, link = 0, -1.0, False
    for c in range(len(s.load)):
        if s.load[c] > most:
            chip, most, link = c, s.load[c], False
        if s.traffic[c] + a.latency > most and s.traffic[c] > 0:
            chip, most, link = c, s.traffic[c] + a.latency, True
    if link and next_uniform(s.random) < 0.5:
        chip += 1
    start = unit
    for i in range(count):  # the first unit of that chip from a random place on
        v = start + i
        if v >= count:
            v -= count
        if s.chip[v] == chip:
            return v
    return unit


@compiled
@no_type_check
def _target(a: MoveArrays, s: UnitMoveState, unit: int) -> int:
    here, chips = s.chip[unit], len(s.load)
    if next_uniform(s.random) < BESIDE_A_NEIGHBOUR:
        before = a.pred_ptr[unit + 1] - a.pred_ptr[unit]
        after = a.succ_ptr[unit + 1] - a.succ_ptr[unit]
        if before + after > 0:
            i = np.int64(next_uniform(s.random) * (before + after))
            if i < before:
                return s.chip[a.pred[a.pred_ptr[unit] + i]]
            return s.chip[a.succ[a.succ_ptr[unit] + i - before]]
    step = 1 if next_uniform(s.random) < 0.5 else -1
    target = here + step
    return target if 0 <= target < chips else here - step


@compiled
@no_type_check
def anneal_moves(
    a: MoveArrays, s: UnitMoveState, moves: int, temperature: float, power: float
) -> None:
    """Try this many moves at one temperature; what was best is kept in ``best``, ``seconds[0]``."""
    energy = _energy(a, s, power)
    for _ in range(moves):
        unit = _start_of_move(a, s)
        target = _target(a, s, unit)
        if target == s.chip[unit] or target < 0 or target >= len(s.load):
            continue
        size = _gather(a, s, unit, target)
        if size == 0:
            continue
        found = _tensors_of(a, s, size)
        for i in range(found):
            _carry(a, s, s.tensors[i], -1.0)
        for j in range(size):
            s.origin[j] = s.chip[s.moved[j]]
            _place(a, s, s.moved[j], target)
        for i in range(found):
            _carry(a, s, s.tensors[i], 1.0)
        accepted = _legal(a, s)
        if accepted:
            after = _energy(a, s, power)
            accepted = after <= energy or next_uniform(s.random) < np.exp(
                (energy - after) / temperature
            )
        if accepted:
            energy = after
            if s.seconds[1] < s.seconds[0] * (1 - 1e-9):
                s.seconds[0] = s.seconds[1]
                for v in range(len(s.chip)):
                    s.best[v] = s.chip[v]
            continue
        for i in range(found):
            _carry(a, s, s.tensors[i], -1.0)
        for j in range(size - 1, -1, -1):
            _place(a, s, s.moved[j], s.origin[j])
        for i in range(found):
            _carry(a, s, s.tensors[i], 1.0)
    _count_all(a, s)  # sums of differences drift
