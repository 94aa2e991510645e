"""Moves of blocks between devices, as both annealers make them; loads and memory stay up to date.

Moving a block changes only the loads of the two devices it leaves and enters: a net's cost on any
third device depends on that device being touched, and on the net being spread, which it stays.

``h``: `Hypergraph`, ``devices``: `Devices`, ``s``: `AnnealingState`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import no_type_check

import numpy as np
from jaxtyping import Float64, Int16, Int32

from go_rl.core.compiled_struct import CompiledStruct, compiled
from go_rl.objectives.host.hypergraph import Devices, Hypergraph, device_loads

NONE = -1
"""No block."""


@dataclass(frozen=True, eq=False)
class CoolingSchedule(CompiledStruct):
    """One annealing run."""

    moves: int
    """Moves proposed."""
    hot: float
    """First temperature, relative to what is minimised."""
    cold: float
    """Last temperature."""

    @property
    def cooling(self) -> float:
        """Factor on the temperature at each move."""
        return (self.cold / self.hot) ** (1.0 / max(1, self.moves))


@dataclass(frozen=True, eq=False)
class AnnealingState(CompiledStruct):
    """An assignment and what keeps its price up to date, and the best one that was seen."""

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
    best: Int16[np.ndarray, "B"]
    """[B] best assignment within memory."""
    least: Float64[np.ndarray, "1"]
    """[1] its value; inf: none was seen."""


def initial_state(
    hypergraph: Hypergraph, devices: Devices, device: Int16[np.ndarray, "B"]
) -> AnnealingState:
    """Return the state of the assignment ``device`` [B], which it shares."""
    loads = device_loads(hypergraph, devices, device)
    state = AnnealingState.zeros(
        {"M": len(hypergraph.net_seconds), "D": len(loads)},
        device=device, loads=loads, best=device.copy(), least=np.full(1, np.inf),
    )  # fmt: skip
    _count_pins(hypergraph, state)
    return state


@compiled
@no_type_check
def _count_pins(h, s) -> None:
    for m in range(len(s.span)):
        for i in range(h.pin_offsets[m], h.pin_offsets[m + 1]):
            d = s.device[h.pins[i]]
            if s.count[m, d] == 0:
                s.span[m] += 1
            s.count[m, d] += 1
    for b in range(len(s.device)):
        s.held[s.device[b]] += h.size[b]


@compiled
@no_type_check
def keep_best(s, value) -> None:
    """The present assignment is the best so far."""
    s.least[0] = value
    for b in range(len(s.device)):
        s.best[b] = s.device[b]


@compiled
@no_type_check
def neighbour(h, b, near, rng):
    """A block that shares a random net with block ``b``; with probability 1 - ``near``, or if there
    is none, `NONE`."""
    first, last = h.block_offsets[b], h.block_offsets[b + 1]
    if last == first or rng.random() >= near:
        return NONE
    m = h.nets[first + int(rng.random() * (last - first))]
    pin = h.pin_offsets[m]
    pin += int(rng.random() * (h.pin_offsets[m + 1] - pin))
    return np.int64(h.pins[pin])


@compiled
@no_type_check
def may_move(h, s, b, to, other):
    """Whether block ``b`` may go to device ``to``, and block ``other``, if any, to its place."""
    home = s.device[b]
    if to == home or not h.allowed[b, to]:
        return False
    return other == NONE or h.allowed[other, home]


@compiled
@no_type_check
def make_move(h, devices, s, b, to, other) -> bool:
    """Put block ``b`` on device ``to`` and block ``other``, if any, in its place. Return whether
    both devices hold at most their limit, or no more than before."""
    home = np.int64(s.device[b])
    held_home, held_to = s.held[home], s.held[to]
    move(h, devices, s, b, to)
    if other != NONE:
        move(h, devices, s, other, home)
    return (s.held[home] <= devices.limit[home] or s.held[home] <= held_home) and (
        s.held[to] <= devices.limit[to] or s.held[to] <= held_to
    )


@compiled
@no_type_check
def take_back(h, devices, s, b, home, other) -> None:
    """Undo `make_move`: block ``b`` comes back to ``home``."""
    if other != NONE:
        move(h, devices, s, other, np.int64(s.device[b]))
    move(h, devices, s, b, home)


@compiled
@no_type_check
def move(h, devices, s, b, to) -> None:
    """Put block ``b`` on device ``to``."""
    a = np.int64(s.device[b])
    if a == to:
        return
    sent_a, sent_to = 0.0, 0.0
    for i in range(h.block_offsets[b], h.block_offsets[b + 1]):
        m = h.nets[i]
        seconds = h.net_seconds[m]
        was = s.span[m]
        at_a, at_to = s.count[m, a] - 1, s.count[m, to]
        now = was - (at_a == 0) + (at_to == 0)
        if was > 1:
            sent_a -= seconds
            if at_to > 0:
                sent_to -= seconds
        if now > 1:
            sent_to += seconds
            if at_a > 0:
                sent_a += seconds
        s.span[m] = now
        s.count[m, a] = at_a
        s.count[m, to] = at_to + 1
    s.loads[a] += (0.0 if devices.is_cpu[a] else sent_a) - h.work[devices.kind[a], b]
    s.loads[to] += (0.0 if devices.is_cpu[to] else sent_to) + h.work[devices.kind[to], b]
    s.held[a] -= h.size[b]
    s.held[to] += h.size[b]
    s.device[b] = to
