"""Simulated annealing on latency: groups of blocks move, and each move is priced in full."""

from __future__ import annotations

from typing import NamedTuple, no_type_check

import numpy as np
from jaxtyping import Int32
from numba import njit

from go_rl.objectives.host.methods.max_load_anneal import initial_state, move
from go_rl.objectives.host.simulate.device_rules import Placement
from go_rl.objectives.host.simulate.latency import quotient_makespan

NEAR = 0.8
"""Share of moves whose target is a device of a neighbouring block."""
SWAP = 0.2
"""Share of moves that exchange two groups."""
IDLE_SHARE = 1e-3
"""Weight of the sum of all loads beside the makespan, so that work off the critical path counts."""


class Members(NamedTuple):
    """The nodes behind each block of one level."""

    place: Placement
    """The problem's arrays, for pricing."""
    consumer_offsets: Int32[np.ndarray, "N1"]
    """[N + 1] rows of `consumers`."""
    consumers: Int32[np.ndarray, "E"]
    """[E] consumers of each node."""
    node_offsets: Int32[np.ndarray, "B1"]
    """[B + 1] rows of `nodes`."""
    nodes: Int32[np.ndarray, "N"]
    """[N] nodes of each block."""
    cpu: Int32[np.ndarray, "C"]
    """CPUs worth trying, one a kind."""


@njit(cache=True, nogil=True)
@no_type_check
def anneal_latency(hypergraph, devices, members, device, schedule, rng):
    """Anneal from ``device`` [B].

    Returns:
        ``(best [B], best value)``; inf when no legal assignment was seen. The last state is left
        in ``device``.

    State beside `AnnealingState`, over ``N`` nodes and ``B`` blocks:

        node_device  [N]  device of each node, kept equal to that of its block
        best, least  [B]  best legal assignment within memory, and its latency
        energy            latency and `IDLE_SHARE` of all loads; inf while illegal
        over              bytes above the devices' limits
        legal             the quotient graph has no cycle
    """
    rows = (members.consumer_offsets, members.consumers)
    state = initial_state(hypergraph, devices, device)
    blocks, num_devices = hypergraph.size.shape[0], devices.kind.shape[0]
    node_device = np.empty(members.nodes.shape[0], device.dtype)
    for b in range(blocks):
        _send(members, node_device, b, np.int64(device[b]))
    best = device.copy()
    now = quotient_makespan(members.place, rows, node_device, state.loads)
    over = _overfull(devices, state)
    legal = now >= 0.0
    least = now if legal and over == 0.0 else np.inf
    energy = now + IDLE_SHARE * state.loads.sum() if legal else np.inf
    cooling = (schedule.cold / schedule.hot) ** (1.0 / max(1, schedule.moves))
    heat = schedule.hot
    for _ in range(schedule.moves):
        # Propose a move of block b, or an exchange with block ``other``.
        heat *= cooling
        b = int(rng.random() * blocks)
        other, to = _propose(hypergraph, members, num_devices, state, b, rng)
        a = np.int64(state.device[b])
        if to == a or not hypergraph.allowed[b, to]:
            continue
        if other >= 0 and not hypergraph.allowed[other, a]:
            continue
        # Make it; no device may come to hold more than its limit unless it holds less than before.
        held_a, held_to = state.held[a], state.held[to]
        move(hypergraph, devices, state, b, to)
        if other >= 0:
            move(hypergraph, devices, state, other, a)
        keep = (state.held[a] <= devices.limit[a] or state.held[a] <= held_a) and (
            state.held[to] <= devices.limit[to] or state.held[to] <= held_to
        )
        after, value = np.inf, -1.0
        # Price it in full, and decide by Metropolis among legal states.
        if keep:
            _send(members, node_device, b, to)
            if other >= 0:
                _send(members, node_device, other, a)
            value = quotient_makespan(members.place, rows, node_device, state.loads)
            over_now = _overfull(devices, state)
            if value < 0.0:
                keep = not legal and over_now <= over
            else:
                after = value + IDLE_SHARE * state.loads.sum()
                if legal and over_now >= over:
                    chance = -heat * energy * np.log(rng.random())
                    keep = after <= energy + chance
            if not keep:
                _send(members, node_device, b, a)
                if other >= 0:
                    _send(members, node_device, other, to)
        # Take it back, or take it over.
        if not keep:
            if other >= 0:
                move(hypergraph, devices, state, other, to)
            move(hypergraph, devices, state, b, a)
            continue
        energy, over = after, _overfull(devices, state)
        legal = value >= 0.0
        if legal and over == 0.0 and value < least * (1.0 - 1e-12):
            least = value
            best[:] = state.device
    return best, least


@njit(cache=True, nogil=True)
@no_type_check
def _propose(hypergraph, members, num_devices, state, b, rng):
    """``(other, to)``: where block ``b`` may go, and the block that comes back, or -1."""
    first, last = hypergraph.block_offsets[b], hypergraph.block_offsets[b + 1]
    if last > first and rng.random() < NEAR:
        m = hypergraph.nets[first + int(rng.random() * (last - first))]
        pin = hypergraph.pin_offsets[m]
        pin += int(rng.random() * (hypergraph.pin_offsets[m + 1] - pin))
        other = hypergraph.pins[pin]
    else:
        other = int(rng.random() * (state.device.shape[0]))
        draw = rng.random()
        if draw < 0.3 and members.cpu.shape[0] > 0:
            return -1, members.cpu[int(rng.random() * (members.cpu.shape[0]))]
        if draw < 0.7:
            return -1, int(rng.random() * num_devices)
    to = state.device[other]
    if rng.random() >= SWAP:
        return -1, to
    return other, to


@njit(cache=True, nogil=True)
@no_type_check
def _send(members, node_device, b, d):
    for i in range(members.node_offsets[b], members.node_offsets[b + 1]):
        node_device[members.nodes[i]] = d


@njit(cache=True, nogil=True)
@no_type_check
def _overfull(devices, state):
    over = 0.0
    for d in range(state.held.shape[0]):
        if state.held[d] > devices.limit[d]:
            over += state.held[d] - devices.limit[d]
    return over
