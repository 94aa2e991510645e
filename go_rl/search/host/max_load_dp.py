"""Interval DP for max-load: the best split of a linear order of blocks into device loads, exactly.

Tarnawski et al., NeurIPS 2020, "DP on a linearised order", with several orders tried.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, no_type_check

import numpy as np
from jaxtyping import Int16, Int32
from numba import njit

from go_rl.core import Budget, Plan, Problem, Progress
from go_rl.core.decisions import Decisions
from go_rl.objectives.host.hypergraph import (
    Contraction,
    Devices,
    Hypergraph,
    block_seconds,
    contract,
    device_loads,
)
from go_rl.objectives.host.max_load_bounds import max_load_bound
from go_rl.objectives.host.max_load_greedy import greedy_blocks
from go_rl.objectives.host.orders import block_orders
from go_rl.objectives.host.workspace import host_workspace
from go_rl.objectives.incumbent import finish_plan

STATE_LIMIT = 512
"""Most ways to count used devices; past it, devices are used in index order."""
WORK_LIMIT = 1e8
"""Most elementary DP steps of one order; longer orders are first cut into runs of equal work."""
LEAST_RUNS = 256
"""Orders are never cut into fewer runs than this for the sake of time."""
NO_STATE = -1


class Pools(NamedTuple):
    """Interchangeable devices as pools ``G``, and how many of each are used as states ``S``."""

    device: Int16[np.ndarray, "G"]
    """[G] a device of each pool, for its kind and limit."""
    following: Int32[np.ndarray, "S G"]
    """[S, G] state after one more device of the pool; `NO_STATE` when none is left."""


@dataclass(frozen=True)
class MaxLoadDP:
    """DP over linear orders: contiguous in one of the orders tried, optimal for that order."""

    orders: int = 8
    """Orders tried while the budget lasts."""

    @property
    def name(self) -> str:
        """What tables call it."""
        return "dp"

    def optimize(self, problem: Problem, budget: Budget, seed: int) -> Plan:
        """Return the best plan over all orders; one sample is one order's plan."""
        workspace, progress = host_workspace(problem), Progress(budget)
        contraction = workspace.contraction
        if workspace.infeasible is not None:
            return finish_plan(workspace, workspace.infeasible, self.name, seed, progress)
        best = None
        progress.raise_bound(max_load_bound(problem))
        orders = block_orders(problem, contraction, seed, self.orders)
        for device in splits(contraction, orders, 1.0):
            if progress.record(assignment_value(contraction, device)):
                best = device
            if progress.spent:
                break
        found = workspace.gave_up if best is None else Decisions(best[contraction.block][None])
        return finish_plan(workspace, found, self.name, seed, progress, progress.bound)


def splits(
    contraction: Contraction, orders: list[Int32[np.ndarray, "_"]], slack: float
) -> Iterator[Int16[np.ndarray, "_"]]:
    """Yield legal assignments [B]: the greedy fill of the first order, then the split of each order
    that comes within ``slack`` times the best value so far."""
    least = np.inf
    filled = greedy_blocks(contraction, orders[0])
    if filled is not None:
        least = assignment_value(contraction, filled)
        yield filled
    for order in orders:
        device = split_order(contraction, order, slack * least)
        if device is not None:
            least = min(least, assignment_value(contraction, device))
            yield device


def assignment_value(contraction: Contraction, device: Int16[np.ndarray, "B"]) -> float:
    """Return the largest load of an assignment of blocks, inf when it overfills a memory."""
    held = np.bincount(device, contraction.hypergraph.size, len(contraction.devices.kind))
    if (held > contraction.devices.limit).any():
        return float("inf")
    return float(device_loads(contraction.hypergraph, contraction.devices, device).max())


def split_order(
    contraction: Contraction, order: Int32[np.ndarray, "B"], ceiling: float = np.inf
) -> Int16[np.ndarray, "B"] | None:
    """Return the best device [B] of each block among splits of ``order`` into intervals.

    None when no split is legal or none has a largest load below ``ceiling``. Blocks that the user
    fixed go to their device afterwards, when memory allows.
    """
    hypergraph, devices = contraction.hypergraph, contraction.devices
    pools = device_pools(devices)
    runs = order_runs(hypergraph, order, pools)
    coarse = contract(hypergraph, runs)
    length = coarse.work.shape[1]
    pieces = _interval_dp(coarse, devices, pools, np.arange(length, dtype=np.int32), ceiling)
    if pieces[0, 0] < 0:
        return None
    device = np.empty(length, np.int16)
    used = np.zeros(len(pools.device), np.int64)
    members = pool_members(devices, pools)
    end = length
    for start, pool in pieces:
        device[start:end] = members[pool][used[pool]]
        used[pool] += 1
        end = start
        if start == 0:
            break
    return _repair_pins(contraction, device[runs])


def device_pools(devices: Devices) -> Pools:
    """Group devices of equal kind and memory; one pool a device when the states are too many."""
    keys = [
        (int(k), bool(c), float(m))
        for k, c, m in zip(devices.kind, devices.is_cpu, devices.limit, strict=True)
    ]
    groups = {key: [d for d, k in enumerate(keys) if k == key] for key in dict.fromkeys(keys)}
    counts = np.array([len(g) for g in groups.values()])
    if np.prod(counts + 1.0) > STATE_LIMIT:
        chips = len(keys)
        state, pool = np.indices((chips + 1, chips))
        table = np.where(pool >= state, pool + 1, NO_STATE)
        return Pools(np.arange(chips, dtype=np.int16), table.astype(np.int32))
    shape = tuple(int(c) + 1 for c in counts)
    used = np.indices(shape).reshape(len(counts), -1)
    strides = np.array([int(np.prod(shape[g + 1 :])) for g in range(len(shape))])
    table = np.arange(used.shape[1])[:, None] + strides[None, :]
    table = np.where(counts[None, :] > used.T, table, NO_STATE)
    return Pools(np.array([g[0] for g in groups.values()], np.int16), table.astype(np.int32))


def pool_members(devices: Devices, pools: Pools) -> list[list[int]]:
    if len(pools.device) == len(devices.kind):
        return [[int(d)] for d in pools.device]
    return [
        [
            e
            for e in range(len(devices.kind))
            if devices.kind[e] == devices.kind[d]
            and devices.is_cpu[e] == devices.is_cpu[d]
            and devices.limit[e] == devices.limit[d]
        ]
        for d in pools.device
    ]


def order_runs(
    hypergraph: Hypergraph, order: Int32[np.ndarray, "B"], pools: Pools
) -> Int32[np.ndarray, "B"]:
    """[B] run of each block: the place in the order, or runs of about equal work if it is long."""
    length = len(order)
    steps = np.count_nonzero(pools.following != NO_STATE)
    by_states = np.sqrt(2.0 * WORK_LIMIT / max(1, steps))
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
def _interval_dp(hypergraph, devices, pools, order, ceiling):
    """Pieces ``(start, pool)`` of the best split, last piece first; ``(-1, -1)`` if there is none.

    least[j, s]: smallest possible largest load of the first j blocks with device counts s.
    """
    length = order.shape[0]
    states, groups = pools.following.shape
    least = np.full((length + 1, states), np.inf)
    start_of = np.full((length + 1, states), -1, np.int32)
    pool_of = np.full((length + 1, states), -1, np.int16)
    state_of = np.full((length + 1, states), -1, np.int32)
    least[0, 0] = 0.0
    inside = np.zeros(hypergraph.net_seconds.shape[0], np.int32)
    work = np.empty(groups)
    for i in range(length):
        open_states = False
        for s in range(states):
            open_states = open_states or least[i, s] < ceiling
        if not open_states:
            continue
        work[:] = 0.0
        sent, size, last = 0.0, 0.0, i
        for j in range(i, length):
            b = order[j]
            last = j
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
                if work[g] >= ceiling or size > devices.limit[d]:
                    continue
                alive = True
                load = work[g] if devices.is_cpu[d] else work[g] + sent
                if load >= ceiling:
                    continue
                for s in range(states):
                    t = pools.following[s, g]
                    worst = max(least[i, s], load)
                    if t >= 0 and worst < least[j + 1, t]:
                        least[j + 1, t] = worst
                        start_of[j + 1, t], pool_of[j + 1, t], state_of[j + 1, t] = i, g, s
            if not alive:
                break
        for j in range(i, last + 1):
            b = order[j]
            for m in hypergraph.nets[hypergraph.block_offsets[b] : hypergraph.block_offsets[b + 1]]:
                inside[m] = 0
    s = np.argmin(least[length])
    pieces = np.full((length + 1, 2), -1, np.int32)
    if least[length, s] >= ceiling or np.isinf(least[length, s]):
        return pieces
    end, count = length, 0
    while end > 0:
        pieces[count, 0], pieces[count, 1] = start_of[end, s], pool_of[end, s]
        s, end = state_of[end, s], start_of[end, s]
        count += 1
    return pieces
