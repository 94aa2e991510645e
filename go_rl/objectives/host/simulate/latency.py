"""The latency objective of dnn-partitioning: the time of one sample through all devices.

The nodes of an accelerator form one contiguous subgraph: it starts when all its inputs are in host
memory, and ends after its load (transfers in, compute, transfers out), when all its outputs are in
host memory. CPU nodes run in parallel without limit, each as soon as its inputs are in host memory.
The graph of accelerator subgraphs and single CPU nodes must be acyclic. Source: Tarnawski et al.,
NeurIPS 2020, section 5.2 and appendix F.
"""

from __future__ import annotations

from typing import no_type_check

import numpy as np
from jaxtyping import Float64, Int8, Int16
from numba import njit

from go_rl.core import Evaluation, Problem
from go_rl.core.evaluation import ILLEGAL, OK
from go_rl.objectives.host.simulate.device_rules import price_batch, price_plan, static_status


def latency_batch(
    problem: Problem, devices: Int16[np.ndarray, "B N"]
) -> tuple[Float64[np.ndarray, "B"], Int8[np.ndarray, "B"]]:
    """Price ``B`` plans at once (`price_batch`); a subgraph that is not contiguous is illegal."""
    return price_batch(problem, devices, _price)


def evaluate_latency(problem: Problem, device: Int16[np.ndarray, "N"]) -> Evaluation:
    """Price one plan; `device_seconds` is each accelerator's load and each CPU's busy time."""
    return price_plan(problem, device, _price)


@njit(cache=True, nogil=True)
@no_type_check
def _price(place, device, loads, held):
    """Return ``(makespan, status code)`` of one plan and fill ``loads`` [D]."""
    loads[:] = 0.0
    code = static_status(place, device, held)
    if code != OK:
        return np.inf, code
    accelerator_loads(place, device, loads)
    value = quotient_makespan(place, device, loads)
    for n in range(device.shape[0]):
        if place.is_cpu[device[n]]:
            loads[device[n]] += place.seconds[place.kind[device[n]], n]
    return (value, OK) if value >= 0.0 else (np.inf, ILLEGAL)


@njit(cache=True, nogil=True)
@no_type_check
def accelerator_loads(place, device, loads):
    """Add compute and transfers of each accelerator to ``loads`` [D]; CPUs stay as they are."""
    offsets, receivers = place.consumer_offsets, place.consumers
    for n in range(device.shape[0]):
        d = device[n]
        if not place.is_cpu[d]:
            loads[d] += place.seconds[place.kind[d], n]
        own = np.uint64(1) << np.uint64(d)
        touched = own
        for i in range(offsets[n], offsets[n + 1]):
            touched |= np.uint64(1) << np.uint64(device[receivers[i]])
        if touched != own:
            for c in range(loads.shape[0]):
                if not place.is_cpu[c] and (touched >> np.uint64(c)) & np.uint64(1):
                    loads[c] += place.transfer[n]


@njit(cache=True, nogil=True)
@no_type_check
def quotient_makespan(place, device, loads):
    """Longest path through accelerator subgraphs and CPU nodes; -1 where they form a cycle.

    Kahn's algorithm on the quotient. Vertices: accelerator d is d, CPU node n is D + n.

        waiting    [D + N]  edges from other vertices not yet followed
        start      [D + N]  seconds at which a vertex may start
        head       [D]      first node of each accelerator, then ``following`` [N]; -1 ends the list
        stack      [D + N]  vertices that are ready, ``top`` of them
        left                vertices not yet finished
    """
    offsets, receivers = place.consumer_offsets, place.consumers
    nodes, num_devices = device.shape[0], loads.shape[0]
    waiting = np.zeros(num_devices + nodes, np.int32)
    start = np.zeros(num_devices + nodes)
    head, following = np.full(num_devices, -1, np.int32), np.full(nodes, -1, np.int32)
    stack, top, left = np.empty(num_devices + nodes, np.int32), 0, 0
    # Nodes of each accelerator, and edges into each vertex.
    for n in range(nodes - 1, -1, -1):
        d = device[n]
        mine = num_devices + n if place.is_cpu[d] else d
        if mine >= num_devices or head[d] < 0:
            left += 1
        if mine < num_devices:
            following[n] = head[d]
            head[d] = n
        for i in range(offsets[n], offsets[n + 1]):
            r = receivers[i]
            other = num_devices + r if place.is_cpu[device[r]] else device[r]
            if other != mine:
                waiting[other] += 1
    # Vertices without predecessors.
    for v in range(num_devices + nodes):
        exists = head[v] >= 0 if v < num_devices else place.is_cpu[device[v - num_devices]]
        if exists and waiting[v] == 0:
            stack[top] = v
            top += 1
    # Finish one vertex after the other.
    makespan = 0.0
    while top > 0:
        top -= 1
        v = stack[top]
        left -= 1
        n = head[v] if v < num_devices else v - num_devices
        end = start[v] + (loads[v] if v < num_devices else place.seconds[place.kind[device[n]], n])
        makespan = max(makespan, end)
        while n >= 0:
            for i in range(offsets[n], offsets[n + 1]):
                r = receivers[i]
                other = num_devices + r if place.is_cpu[device[r]] else device[r]
                if other != v:
                    start[other] = max(start[other], end)
                    waiting[other] -= 1
                    if waiting[other] == 0:
                        stack[top] = other
                        top += 1
            n = following[n] if v < num_devices else -1
    return makespan if left == 0 else -1.0
