"""Interval DP for latency: the least sum of accelerator loads and CPU times along a linear order.

The sum is the time when nothing runs in parallel, an upper bound on the latency of the split, exact
for a chain. It gives the local search its starts.
"""

from __future__ import annotations

from typing import no_type_check

import numpy as np
from jaxtyping import Int16, Int32
from numba import njit

from go_rl.objectives.host.hypergraph import contract
from go_rl.objectives.host.latency_blocks import LatencyBlocks
from go_rl.search.host.max_load_dp import NO_STATE, Pools, device_pools, order_runs, pool_members


def split_for_latency(
    blocks: LatencyBlocks, order: Int32[np.ndarray, "B"]
) -> Int16[np.ndarray, "B"] | None:
    """Return the device [B] of the split of ``order`` with the least sequential time, or None.

    ``order`` must be topological: then every interval is contiguous.
    """
    contraction = blocks.contraction
    hypergraph, devices = contraction.hypergraph, contraction.devices
    pools = _accelerator_pools(device_pools(devices), devices.is_cpu)
    runs = order_runs(hypergraph, order, pools)
    coarse = contract(hypergraph, runs)
    length = coarse.work.shape[1]
    cpu = np.where(coarse.allowed & devices.is_cpu, coarse.work[devices.kind].T, np.inf)
    at = cpu.argmin(axis=1).astype(np.int16)
    pieces = _sequential_dp(coarse, devices, pools, cpu.min(axis=1))
    if pieces[0, 0] < 0:
        return None
    members = pool_members(devices, pools)
    used = np.zeros(len(pools.device), np.int64)
    device, end = np.empty(length, np.int16), length
    for start, pool in pieces:
        if start < 0:
            break
        if pool < 0:
            device[start:end] = at[start:end]
        else:
            device[start:end] = members[pool][used[pool]]
            used[pool] += 1
        end = start
    spread = device[runs]
    return spread if hypergraph.allowed[np.arange(len(spread)), spread].all() else None


def _accelerator_pools(pools: Pools, is_cpu: np.ndarray) -> Pools:
    following = np.where(is_cpu[pools.device][None, :], NO_STATE, pools.following)
    return Pools(pools.device, following.astype(np.int32))


@njit(cache=True, nogil=True)
@no_type_check
def _sequential_dp(hypergraph, devices, pools, cpu):
    """Pieces ``(start, pool)``, last first; pool -1 is the CPUs; ``(-1, -1)`` if there is none.

    least[j, s]: least sequential time of the first j blocks with device counts s.
    """
    length = hypergraph.size.shape[0]
    states, groups = pools.following.shape
    least = np.full((length + 1, states), np.inf)
    start_of = np.full((length + 1, states), -1, np.int32)
    pool_of = np.full((length + 1, states), -1, np.int16)
    state_of = np.full((length + 1, states), -1, np.int32)
    least[0, 0] = 0.0
    inside = np.zeros(hypergraph.net_seconds.shape[0], np.int32)
    work = np.empty(groups)
    for i in range(length):
        for s in range(states):
            if least[i, s] + cpu[i] < least[i + 1, s]:
                least[i + 1, s] = least[i, s] + cpu[i]
                start_of[i + 1, s], pool_of[i + 1, s], state_of[i + 1, s] = i, -1, s
        work[:] = 0.0
        sent, size, last = 0.0, 0.0, i
        for b in range(i, length):
            last = b
            size += hypergraph.size[b]
            for m in hypergraph.nets[hypergraph.block_offsets[b] : hypergraph.block_offsets[b + 1]]:
                if inside[m] == 0:
                    sent += hypergraph.net_seconds[m]
                inside[m] += 1
                if inside[m] == hypergraph.pin_offsets[m + 1] - hypergraph.pin_offsets[m]:
                    sent -= hypergraph.net_seconds[m]
            alive = False
            for g in range(groups):
                d = pools.device[g]
                work[g] += hypergraph.work[devices.kind[d], b]
                if devices.is_cpu[d] or np.isinf(work[g]) or size > devices.limit[d]:
                    continue
                alive = True
                for s in range(states):
                    t = pools.following[s, g]
                    total = least[i, s] + work[g] + sent
                    if t >= 0 and total < least[b + 1, t]:
                        least[b + 1, t] = total
                        start_of[b + 1, t], pool_of[b + 1, t], state_of[b + 1, t] = i, g, s
            if not alive:
                break
        for b in range(i, last + 1):
            for m in hypergraph.nets[hypergraph.block_offsets[b] : hypergraph.block_offsets[b + 1]]:
                inside[m] = 0
    s = np.argmin(least[length])
    pieces = np.full((length + 1, 2), -1, np.int32)
    if np.isinf(least[length, s]):
        return pieces
    end, found = length, 0
    while end > 0:
        pieces[found, 0], pieces[found, 1] = start_of[end, s], pool_of[end, s]
        s, end = state_of[end, s], start_of[end, s]
        found += 1
    return pieces
