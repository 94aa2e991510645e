"""Interval DP: the best split of a linear order of blocks into one interval a device, exactly.

Tarnawski et al., NeurIPS 2020, "DP on a linearised order". Max-load minimises the largest load.
Latency minimises the sum of accelerator loads and CPU times: the time when nothing runs in
parallel, an upper bound on the latency of the split, exact for a chain.
"""

from __future__ import annotations

from typing import NamedTuple, no_type_check

import numpy as np
from jaxtyping import Int16, Int32
from numba import njit

from go_rl.objectives.host.hypergraph import (
    Contraction,
    Devices,
    Hypergraph,
    block_seconds,
    contract,
)

STATE_LIMIT = 512
"""Most ways to count used devices; past it, devices are used in index order."""
WORK_LIMIT = 1e8
"""Most DP transitions of one order; longer orders are first cut into runs of equal work."""
LEAST_RUNS = 256
"""Orders are never cut into fewer runs than this for the sake of time."""
NO_STATE = -1
"""No device of the pool is left."""
ALONE = -1
"""Pool of a run that takes no interval of a device."""
START, POOL, STATE = range(3)
"""Columns of a DP choice: first run of the last interval, its pool, the state before it."""


class Pools(NamedTuple):
    """Interchangeable devices as pools ``G``, and how many of each are used as states ``S``."""

    device: Int16[np.ndarray, "G"]
    """[G] a device of each pool, for its kind and limit."""
    following: Int32[np.ndarray, "S G"]
    """[S, G] state after one more device of the pool; `NO_STATE` when none is left."""


def split_for_max_load(
    contraction: Contraction, order: Int32[np.ndarray, "B"], ceiling: float = np.inf
) -> Int16[np.ndarray, "B"] | None:
    """Return the device [B] of each block in the split of ``order`` with the least largest load.

    None when no split is legal or none has a largest load below ``ceiling``. Blocks that the user
    fixed go to their device afterwards, when memory allows.
    """
    hypergraph, devices = contraction.hypergraph, contraction.devices
    pools, members = _device_pools(devices)
    runs = _order_runs(hypergraph, order, pools)
    coarse = contract(hypergraph, runs)
    alone = np.full(coarse.work.shape[1], np.inf), np.full(coarse.work.shape[1], ALONE)
    pieces = _interval_dp(coarse, devices, pools, alone[0], ceiling, False)
    device = _devices_of(pieces, members, alone[1])
    return None if device is None else _repair_pins(contraction, device[runs])


def split_for_latency(
    contraction: Contraction, order: Int32[np.ndarray, "B"]
) -> Int16[np.ndarray, "B"] | None:
    """Return the device [B] of each block in the split of ``order`` with the least sequential time,
    or None; ``order`` must be topological: then every interval is contiguous.

    CPUs take single runs, accelerators take intervals.
    """
    hypergraph, devices = contraction.hypergraph, contraction.devices
    pools, members = _device_pools(devices)
    following = np.where(devices.is_cpu[pools.device], NO_STATE, pools.following)
    pools = pools._replace(following=following.astype(np.int32))
    runs = _order_runs(hypergraph, order, pools)
    coarse = contract(hypergraph, runs)
    cpu = np.where(coarse.allowed & devices.is_cpu, coarse.work[devices.kind].T, np.inf)
    pieces = _interval_dp(coarse, devices, pools, cpu.min(axis=1), np.inf, True)
    device = _devices_of(pieces, members, cpu.argmin(axis=1))
    if device is None:
        return None
    spread = device[runs]
    return spread if hypergraph.allowed[np.arange(len(spread)), spread].all() else None


def _devices_of(
    pieces: Int32[np.ndarray, "P 2"], members: list[list[int]], alone: np.ndarray
) -> Int16[np.ndarray, "L"] | None:
    """Device [L] of each run of the pieces of `_interval_dp`; ``alone`` [L]: of one outside all
    pools."""
    if not len(pieces):
        return None
    end, left = len(alone), [iter(devices) for devices in members]
    device = np.empty(end, np.int16)
    for start, pool in pieces:
        device[start:end] = alone[start:end] if pool == ALONE else next(left[pool])
        end = start
    return device


def _device_pools(devices: Devices) -> tuple[Pools, list[list[int]]]:
    """Group devices of equal kind and memory, and list each group; one pool a device when the
    states are too many."""
    keys = [
        (int(k), bool(c), float(m))
        for k, c, m in zip(devices.kind, devices.is_cpu, devices.limit, strict=True)
    ]
    groups = [[d for d, k in enumerate(keys) if k == key] for key in dict.fromkeys(keys)]
    counts = np.array([len(g) for g in groups])
    if np.prod(counts + 1.0) > STATE_LIMIT:
        num_devices = len(keys)
        state, pool = np.indices((num_devices + 1, num_devices))
        table = np.where(pool >= state, pool + 1, NO_STATE)
        alone = [[d] for d in range(num_devices)]
        return Pools(np.arange(num_devices, dtype=np.int16), table.astype(np.int32)), alone
    shape = tuple(int(c) + 1 for c in counts)
    used = np.indices(shape).reshape(len(counts), -1)
    strides = np.array([int(np.prod(shape[g + 1 :])) for g in range(len(shape))])
    table = np.arange(used.shape[1])[:, None] + strides[None, :]
    table = np.where(counts[None, :] > used.T, table, NO_STATE)
    return Pools(np.array([g[0] for g in groups], np.int16), table.astype(np.int32)), groups


def _order_runs(
    hypergraph: Hypergraph, order: Int32[np.ndarray, "B"], pools: Pools
) -> Int32[np.ndarray, "B"]:
    """[B] run of each block: the place in the order, or runs of about equal work if it is long."""
    length = len(order)
    transitions = np.count_nonzero(pools.following != NO_STATE)
    by_states = np.sqrt(2.0 * WORK_LIMIT / max(1, transitions))
    by_pins = 2.0 * WORK_LIMIT / max(1, len(hypergraph.pins))
    longest = max(LEAST_RUNS, int(min(by_states, by_pins)))
    run = np.empty(length, np.int32)
    if length <= longest:
        run[order] = np.arange(length, dtype=np.int32)
        return run
    seconds = block_seconds(hypergraph)[order]
    share = np.cumsum(seconds / max(seconds.sum(), 1e-300) + 1.0 / length) / 2.0
    _, place = np.unique(np.floor(share * (longest - 1)), return_inverse=True)
    run[order] = place.reshape(-1).astype(np.int32)
    return run


def _repair_pins(
    contraction: Contraction, device: Int16[np.ndarray, "B"]
) -> Int16[np.ndarray, "B"] | None:
    """Move blocks that may not sit where the split put them; None when memory forbids it."""
    hypergraph, devices = contraction.hypergraph, contraction.devices
    blocks = np.arange(len(device))
    wrong = np.flatnonzero(~hypergraph.allowed[blocks, device])
    if wrong.size:
        device = device.copy()
        cost = hypergraph.work[devices.kind][:, wrong]
        device[wrong] = np.where(hypergraph.allowed[wrong].T, cost, np.inf).argmin(axis=0)
    held = np.bincount(device, hypergraph.size, len(devices.kind))
    return device if (held <= devices.limit).all() else None


@njit(cache=True, nogil=True)
@no_type_check
def _interval_dp(runs, devices, pools, alone, ceiling, summed):
    """Pieces ``(start, pool)`` of the best split, last piece first; none if there is no split.

    State of the DP (``L`` runs, ``S`` states of `Pools`, ``M`` nets, ``G`` pools):

        least   [L + 1, S]     least cost of the first j runs with device counts s
        choice  [L + 1, S, 3]  how it is reached: `START`, `POOL`, `STATE`
        inside  [M]            pins of each net in the interval from run i to run j
        work    [G]            seconds of the interval on each pool's device
        usable  [G]            the pool takes intervals
        sent                   seconds of the nets that the interval cuts
    """
    length = runs.size.shape[0]
    states, groups = pools.following.shape
    least = np.full((length + 1, states), np.inf)
    choice = np.full((length + 1, states, 3), -1, np.int32)
    least[0, 0] = 0.0
    inside = np.zeros(runs.net_seconds.shape[0], np.int32)
    work, usable = np.empty(groups), np.zeros(groups, np.bool_)
    for g in range(groups):
        usable[g] = (pools.following[:, g] != NO_STATE).any()
    for i in range(length):
        # Run i alone.
        reached = False
        for s in range(states):
            reached = reached or least[i, s] < ceiling
            if least[i, s] + alone[i] < least[i + 1, s]:
                least[i + 1, s] = least[i, s] + alone[i]
                choice[i + 1, s] = (i, ALONE, s)
        if not reached:
            continue
        # Every interval that starts with run i, while some device can hold it.
        work[:] = 0.0
        sent, size, end = 0.0, 0.0, i
        alive = True
        while alive and end < length:
            size += runs.size[end]
            sent = _extend(runs, inside, end, sent)
            alive = False
            for g in range(groups):
                d = pools.device[g]
                work[g] += runs.work[devices.kind[d], end]
                if work[g] >= ceiling or size > devices.limit[d] or not usable[g]:
                    continue
                alive = True
                load = work[g] if devices.is_cpu[d] else work[g] + sent
                if load >= ceiling:
                    continue
                for s in range(states):
                    t = pools.following[s, g]
                    cost = least[i, s] + work[g] + sent if summed else max(least[i, s], load)
                    if t >= 0 and cost < least[end + 1, t]:
                        least[end + 1, t] = cost
                        choice[end + 1, t] = (i, g, s)
            end += 1
        for j in range(i, end):
            for m in runs.nets[runs.block_offsets[j] : runs.block_offsets[j + 1]]:
                inside[m] = 0
    s = np.argmin(least[length])
    return _pieces(choice, s if least[length, s] < ceiling else NO_STATE)


@njit(cache=True, nogil=True)
@no_type_check
def _extend(runs, inside, j, sent):
    """Seconds of the nets that an interval cuts once run ``j`` has joined it."""
    for m in runs.nets[runs.block_offsets[j] : runs.block_offsets[j + 1]]:
        if inside[m] == 0:
            sent += runs.net_seconds[m]
        inside[m] += 1
        if inside[m] == runs.pin_offsets[m + 1] - runs.pin_offsets[m]:
            sent -= runs.net_seconds[m]
    return sent


@njit(cache=True, nogil=True)
@no_type_check
def _pieces(choice, s):
    """Follow the choices back from the last run in state ``s``."""
    end = choice.shape[0] - 1 if s != NO_STATE else 0
    pieces, count = np.empty((end, 2), np.int32), 0
    while end > 0:
        pieces[count, 0], pieces[count, 1] = choice[end, s, START], choice[end, s, POOL]
        s, end = choice[end, s, STATE], choice[end, s, START]
        count += 1
    return pieces[:count]
