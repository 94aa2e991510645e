"""Simulated annealing on max-load over arbitrary assignments of blocks, one move at a time.

Moving a block changes only the loads of the two devices it leaves and enters: a net's cost on any
third device depends on that device being touched, and on the net being spread, which it stays.
"""

from __future__ import annotations

from typing import NamedTuple, no_type_check

import numpy as np
from jaxtyping import Float64, Int16, Int32
from numba import njit

from go_rl.objectives.host.hypergraph import device_loads

OVERFULL = 1e3
"""Energy of one whole device memory over the limit, in units of a device at the target load."""
NEAR = 0.85
"""Share of moves whose target is a device of a neighbouring block."""
SWAP = 0.25
"""Share of moves that exchange two blocks."""
POWER_ROUNDS = 4
"""The energy is the sum of (load / target) to the power 2 ** rounds."""


class CoolingSchedule(NamedTuple):
    """One annealing run."""

    moves: int
    """Moves proposed."""
    hot: float
    """First temperature, as a relative change of one device's load at the target."""
    cold: float
    """Last temperature."""


class AnnealingState(NamedTuple):
    """An assignment and what keeps its price up to date; every array is changed in place."""

    device: Int16[np.ndarray, "B"]
    """[B] device of each block."""
    count: Int32[np.ndarray, "M D"]
    """[M, D] pins of each net on each device."""
    span: Int32[np.ndarray, "M"]
    """[M] devices that each net touches."""
    loads: Float64[np.ndarray, "D"]
    """[D] load of each device."""
    held: Float64[np.ndarray, "D"]
    """[D] bytes on each device."""


@njit(cache=True, nogil=True)
@no_type_check
def anneal(hypergraph, devices, device, schedule, rng):
    """Anneal from ``device`` [B].

    Returns:
        ``(best [B], best value)``, the best assignment within memory, its value inf if there was
        none; the last state is left in ``device``.
    """
    state = initial_state(hypergraph, devices, device)
    blocks, num_devices = hypergraph.size.shape[0], devices.kind.shape[0]
    best = device.copy()
    least = _value(devices, state)
    target = state.loads.max() if np.isinf(least) else least
    if blocks == 0 or num_devices < 2 or target <= 0.0:
        return best, least
    scale = float(2**POWER_ROUNDS)
    cooling = (schedule.cold / schedule.hot) ** (1.0 / max(1, schedule.moves))
    heat = schedule.hot * scale
    for _ in range(schedule.moves):
        # Propose a move of block b, or an exchange with block ``other``.
        heat *= cooling
        b = int(rng.random() * blocks)
        other, to = _propose(hypergraph, num_devices, state, b, rng)
        a = np.int64(state.device[b])
        if to == a or not hypergraph.allowed[b, to]:
            continue
        if other >= 0 and not hypergraph.allowed[other, a]:
            continue
        # Make it; only the two devices' energies change.
        before = _energy(devices, state, a, target) + _energy(devices, state, to, target)
        held_a, held_to = state.held[a], state.held[to]
        move(hypergraph, devices, state, b, to)
        if other >= 0:
            move(hypergraph, devices, state, other, a)
        after = _energy(devices, state, a, target) + _energy(devices, state, to, target)
        fits = (state.held[a] <= devices.limit[a] or state.held[a] <= held_a) and (
            state.held[to] <= devices.limit[to] or state.held[to] <= held_to
        )
        rise = after - before
        # Take it back by Metropolis, or remember a new best.
        if not fits or (rise > 0.0 and rise > -heat * np.log(rng.random())):
            if other >= 0:
                move(hypergraph, devices, state, other, to)
            move(hypergraph, devices, state, b, a)
        elif state.loads[a] < least and state.loads[to] < least:
            now = _value(devices, state)
            if now < least * (1.0 - 1e-12):
                least = now
                best[:] = state.device
    exact = device_loads(hypergraph, devices, best)
    return best, exact.max() if least < np.inf else np.inf


@njit(cache=True, nogil=True)
@no_type_check
def initial_state(hypergraph, devices, device):
    """State of the assignment ``device`` [B], which it shares."""
    nets, num_devices = hypergraph.net_seconds.shape[0], devices.kind.shape[0]
    count, span = np.zeros((nets, num_devices), np.int32), np.zeros(nets, np.int32)
    for m in range(nets):
        for i in range(hypergraph.pin_offsets[m], hypergraph.pin_offsets[m + 1]):
            d = device[hypergraph.pins[i]]
            if count[m, d] == 0:
                span[m] += 1
            count[m, d] += 1
    held = np.zeros(num_devices)
    for b in range(device.shape[0]):
        held[device[b]] += hypergraph.size[b]
    return AnnealingState(device, count, span, device_loads(hypergraph, devices, device), held)


@njit(cache=True, nogil=True)
@no_type_check
def move(hypergraph, devices, state, b, to):
    """Put block ``b`` on device ``to``."""
    a = state.device[b]
    if a == to:
        return
    left = hypergraph.work[devices.kind[a], b]
    entered = hypergraph.work[devices.kind[to], b]
    sent_a, sent_to = 0.0, 0.0
    for i in range(hypergraph.block_offsets[b], hypergraph.block_offsets[b + 1]):
        m = hypergraph.nets[i]
        seconds = hypergraph.net_seconds[m]
        was = state.span[m]
        at_a, at_to = state.count[m, a] - 1, state.count[m, to]
        now = was - (at_a == 0) + (at_to == 0)
        if was > 1:
            sent_a -= seconds
            if at_to > 0:
                sent_to -= seconds
        if now > 1:
            sent_to += seconds
            if at_a > 0:
                sent_a += seconds
        state.span[m] = now
        state.count[m, a] = at_a
        state.count[m, to] = at_to + 1
    state.loads[a] += (0.0 if devices.is_cpu[a] else sent_a) - left
    state.loads[to] += (0.0 if devices.is_cpu[to] else sent_to) + entered
    state.held[a] -= hypergraph.size[b]
    state.held[to] += hypergraph.size[b]
    state.device[b] = to


@njit(cache=True, nogil=True)
@no_type_check
def _propose(hypergraph, num_devices, state, b, rng):
    """``(other, to)``: where block ``b`` may go, and the block that comes back, or -1."""
    first, last = hypergraph.block_offsets[b], hypergraph.block_offsets[b + 1]
    if last > first and rng.random() < NEAR:
        m = hypergraph.nets[first + int(rng.random() * (last - first))]
        pin = hypergraph.pin_offsets[m]
        pin += int(rng.random() * (hypergraph.pin_offsets[m + 1] - pin))
        other = hypergraph.pins[pin]
    else:
        other = int(rng.random() * (state.device.shape[0]))
        if rng.random() < 0.5:
            return -1, int(rng.random() * num_devices)
    to = state.device[other]
    if rng.random() >= SWAP:
        return -1, to
    if rng.random() < 0.5:
        return other, to
    stranger = int(rng.random() * (state.device.shape[0]))
    return stranger, state.device[stranger]


@njit(cache=True, nogil=True)
@no_type_check
def _energy(devices, state, d, target):
    x = max(0.0, state.loads[d] / target)
    for _ in range(POWER_ROUNDS):
        x *= x
    if state.held[d] > devices.limit[d]:
        x += OVERFULL * (state.held[d] / devices.limit[d] - 1.0)
    return x


@njit(cache=True, nogil=True)
@no_type_check
def _value(devices, state):
    for d in range(state.held.shape[0]):
        if state.held[d] > devices.limit[d]:
            return np.inf
    return state.loads.max()
