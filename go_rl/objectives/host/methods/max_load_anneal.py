"""Simulated annealing on max-load over arbitrary assignments of blocks, one move at a time."""

from __future__ import annotations

from typing import no_type_check

import numpy as np
from jaxtyping import Int16

from go_rl.core.compiled_struct import compiled
from go_rl.objectives.host.hypergraph import Devices, Hypergraph, device_loads
from go_rl.objectives.host.methods.block_moves import (
    NONE,
    CoolingSchedule,
    initial_state,
    keep_best,
    make_move,
    may_move,
    neighbour,
    take_back,
)

OVERFULL = 1e3
"""Energy of one whole device memory over the limit, in units of a device at the target load."""
NEAR = 0.85
"""Share of moves whose target is a device of a neighbouring block."""
SWAP = 0.25
"""Share of moves that exchange two blocks."""
POWER_ROUNDS = 4
"""The energy is the sum of (load / target) to the power 2 ** rounds."""


def anneal(
    hypergraph: Hypergraph,
    devices: Devices,
    device: Int16[np.ndarray, "B"],
    schedule: CoolingSchedule,
    rng: np.random.Generator,
) -> tuple[Int16[np.ndarray, "B"], float]:
    """Anneal from ``device`` [B], in which the last state is left.

    Returns:
        ``(best [B], best value)``, the best assignment within memory, its value inf if there was
        none.
    """
    state = initial_state(hypergraph, devices, device)
    _anneal(hypergraph, devices, state, schedule, schedule.cooling, rng)
    if state.least[0] == np.inf:
        return state.best, np.inf
    return state.best, float(device_loads(hypergraph, devices, state.best).max())


@compiled
@no_type_check
def _anneal(h, devices, s, schedule, cooling, rng) -> None:
    s.least[0] = _value(devices, s)
    target = _largest_load(s) if np.isinf(s.least[0]) else s.least[0]
    if len(s.device) == 0 or len(s.loads) < 2 or target <= 0.0:
        return
    heat = schedule.hot * 2.0**POWER_ROUNDS
    for _ in range(schedule.moves):
        # Propose a move of block b, or an exchange with block ``other``.
        heat *= cooling
        b = int(rng.random() * len(s.device))
        other, to = _propose(h, s, b, rng)
        if not may_move(h, s, b, to, other):
            continue
        # Make it; only the two devices' energies change.
        a = np.int64(s.device[b])
        before = _energy(devices, s, a, target) + _energy(devices, s, to, target)
        fits = make_move(h, devices, s, b, to, other)
        rise = _energy(devices, s, a, target) + _energy(devices, s, to, target) - before
        # Take it back by Metropolis, or remember a new best.
        if not fits or (rise > 0.0 and rise > -heat * np.log(rng.random())):
            take_back(h, devices, s, b, a, other)
        elif s.loads[a] < s.least[0] and s.loads[to] < s.least[0]:
            now = _value(devices, s)
            if now < s.least[0] * (1.0 - 1e-12):
                keep_best(s, now)


@compiled
@no_type_check
def _propose(h, s, b, rng):
    """``(other, to)``: where block ``b`` may go, and the block that comes back, or `NONE`."""
    other = neighbour(h, b, NEAR, rng)
    if other == NONE:
        other = int(rng.random() * len(s.device))
        if rng.random() < 0.5:
            return NONE, int(rng.random() * len(s.loads))
    to = np.int64(s.device[other])
    if rng.random() >= SWAP:
        return NONE, to
    if rng.random() < 0.5:
        return other, to
    stranger = int(rng.random() * len(s.device))
    return stranger, np.int64(s.device[stranger])


@compiled
@no_type_check
def _energy(devices, s, d, target):
    x = max(0.0, s.loads[d] / target)
    for _ in range(POWER_ROUNDS):
        x *= x
    if s.held[d] > devices.limit[d]:
        x += OVERFULL * (s.held[d] / devices.limit[d] - 1.0)
    return x


@compiled
@no_type_check
def _value(devices, s):
    for d in range(len(s.held)):
        if s.held[d] > devices.limit[d]:
            return np.inf
    return _largest_load(s)


@compiled
@no_type_check
def _largest_load(s):
    largest = s.loads[0]
    for d in range(1, len(s.loads)):
        largest = max(largest, s.loads[d])
    return largest
