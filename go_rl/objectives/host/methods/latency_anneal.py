"""Simulated annealing on latency: groups of blocks move, and each move is priced in full."""

from __future__ import annotations

from dataclasses import dataclass
from typing import no_type_check

import numpy as np
from jaxtyping import Bool, Float64, Int16, Int32
from numba import njit

from go_rl.core.compiled_struct import CompiledStruct, compiled
from go_rl.objectives.host.hypergraph import Devices, Hypergraph
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
from go_rl.objectives.host.simulate.device_rules import Placement
from go_rl.objectives.host.simulate.latency import quotient_makespan

NEAR = 0.8
"""Share of moves whose target is a device of a neighbouring block."""
SWAP = 0.2
"""Share of moves that exchange two groups."""
IDLE_SHARE = 1e-3
"""Weight of the sum of all loads beside the makespan, so that work off the critical path counts."""


@dataclass(frozen=True, eq=False)
class Members(CompiledStruct):
    """Nodes behind each block of one level, and the price of the present assignment of them."""

    node_offsets: Int32[np.ndarray, "B1"]
    """[B + 1] rows of `nodes`."""
    nodes: Int32[np.ndarray, "N"]
    """[N] nodes of each block."""
    cpu: Int32[np.ndarray, "C"]
    """[C] CPUs worth trying, one a kind."""
    device: Int16[np.ndarray, "N"]
    """[N] device of each node, kept equal to that of its block."""
    energy: Float64[np.ndarray, "1"]
    """[1] latency and `IDLE_SHARE` of all loads; inf while illegal."""
    over: Float64[np.ndarray, "1"]
    """[1] bytes above the devices' limits."""
    legal: Bool[np.ndarray, "1"]
    """[1] the quotient graph has no cycle."""


def members_of(owner: Int32[np.ndarray, "N"], cpu: Int32[np.ndarray, "C"]) -> Members:
    """Return the nodes behind each block, the block of each node being ``owner`` [N].

    ``cpu`` [C]: CPUs worth trying.
    """
    offsets = np.zeros(int(owner.max()) + 2, np.int32)
    np.cumsum(np.bincount(owner), out=offsets[1:])
    nodes = np.argsort(owner, kind="stable").astype(np.int32)
    return Members.zeros({"N": len(owner)}, node_offsets=offsets, nodes=nodes, cpu=cpu)


def anneal_latency(
    hypergraph: Hypergraph,
    level: tuple[Placement, Devices, Members],
    device: Int16[np.ndarray, "B"],
    schedule: CoolingSchedule,
    rng: np.random.Generator,
) -> tuple[Int16[np.ndarray, "B"], float]:
    """Anneal from ``device`` [B], in which the last state is left.

    Args:
        hypergraph: blocks.
        level: the problem's arrays for pricing, its devices, and the nodes behind the blocks.
        device: [B] devices of the blocks.
        schedule: temperatures.
        rng: source of the moves.

    Returns:
        ``(best [B], best value)``; inf when no legal assignment was seen.
    """
    state = initial_state(hypergraph, level[1], device)
    _anneal(hypergraph, *level, state, schedule, schedule.cooling, rng)
    return state.best, float(state.least[0])


@njit(cache=True, nogil=True)
@no_type_check
def _anneal(h, place, devices, members, s, schedule, cooling, rng) -> None:
    for b in range(len(s.device)):
        _send(members, s, b)
    value = quotient_makespan(place, members.device, s.loads)
    _take_over(devices, members, s, value, value + IDLE_SHARE * s.loads.sum())
    heat = schedule.hot
    for _ in range(schedule.moves):
        # Propose a move of block b, or an exchange with block ``other``.
        heat *= cooling
        b = int(rng.random() * len(s.device))
        other, to = _propose(h, members, s, b, rng)
        if not may_move(h, s, b, to, other):
            continue
        # Make it; no device may come to hold more than its limit unless it holds less than before.
        home = np.int64(s.device[b])
        keep = make_move(h, devices, s, b, to, other)
        # Price it in full.
        if keep:
            _send_both(members, s, b, other)
            value = quotient_makespan(place, members.device, s.loads)
            energy = value + IDLE_SHARE * s.loads.sum()
            keep = _accepts(devices, members, s, value, energy, heat, rng)
            if keep:
                _take_over(devices, members, s, value, energy)
                continue
        take_back(h, devices, s, b, home, other)
        _send_both(members, s, b, other)


@compiled
@no_type_check
def _accepts(devices, members, s, value, energy, heat, rng):
    """Metropolis among legal states; towards them whatever holds less above the limits."""
    over = _overfull(devices, s)
    if value < 0.0:
        return not members.legal[0] and over <= members.over[0]
    if members.legal[0] and over >= members.over[0]:
        chance = -heat * members.energy[0] * np.log(rng.random())
        return energy <= members.energy[0] + chance
    return True


@compiled
@no_type_check
def _take_over(devices, members, s, value, energy) -> None:
    """The present assignment counts; ``value``: its latency, negative if it is illegal."""
    members.legal[0] = value >= 0.0
    members.energy[0] = energy if value >= 0.0 else np.inf
    members.over[0] = _overfull(devices, s)
    fits = value >= 0.0 and members.over[0] == 0.0
    if fits and value < s.least[0] * (1.0 - 1e-12):
        keep_best(s, value)


@compiled
@no_type_check
def _propose(h, members, s, b, rng):
    """``(other, to)``: where block ``b`` may go, and the block that comes back, or `NONE`."""
    other = neighbour(h, b, NEAR, rng)
    if other == NONE:
        other = int(rng.random() * len(s.device))
        draw = rng.random()
        if draw < 0.3 and len(members.cpu) > 0:
            return NONE, np.int64(members.cpu[int(rng.random() * len(members.cpu))])
        if draw < 0.7:
            return NONE, int(rng.random() * len(s.loads))
    to = np.int64(s.device[other])
    if rng.random() >= SWAP:
        return NONE, to
    return other, to


@compiled
@no_type_check
def _send_both(members, s, b, other) -> None:
    _send(members, s, b)
    if other != NONE:
        _send(members, s, other)


@compiled
@no_type_check
def _send(members, s, b) -> None:
    """The nodes of block ``b`` follow it."""
    for i in range(members.node_offsets[b], members.node_offsets[b + 1]):
        members.device[members.nodes[i]] = s.device[b]


@compiled
@no_type_check
def _overfull(devices, s):
    over = 0.0
    for d in range(len(s.held)):
        if s.held[d] > devices.limit[d]:
            over += s.held[d] - devices.limit[d]
    return over
