"""`plan_value`: the objective of a legal plan, slow and obvious.

Shares no code with solvers, environments or simulators. Times in seconds, sizes in bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from graphlib import TopologicalSorter

import numpy as np
from jaxtyping import Int

from go_rl.core.objective import Objective
from go_rl.core.problem import Problem

Replicas = Mapping[int, Sequence[int]]


def plan_value(problem: Problem, device: Int[np.ndarray, "N"], replicas: Replicas) -> float:
    """Return the objective of a plan that `legal` accepts, in seconds; not for makespan.

    ``device`` is [N], the home of each node; ``replicas`` its further devices. The objectives are
    defined in docs/objectives.md; `go_rl.verify.makespan_value` has makespan.
    """
    home = [int(d) for d in device]
    if problem.objective is Objective.RING:
        return ring_seconds(problem, home, replicas)
    if problem.objective is Objective.MAX_LOAD:
        return max(device_loads(problem, home))
    return latency_seconds(problem, home)


def ring_seconds(problem: Problem, home: list[int], replicas: Replicas) -> float:
    """T_max: the busiest chip or link of the pipeline, seconds an iteration."""
    on = [{chip, *(int(c) for c in replicas.get(n, ()))} for n, chip in enumerate(home)]
    busy = link_seconds(problem, link_bytes(problem, home, on))
    return max(ring_compute(problem, on) + busy)


def ring_compute(problem: Problem, on: list[set[int]]) -> list[float]:
    """[D] seconds of all nodes present on each chip; ``on``: the chips that hold each node."""
    kind = problem.device_kind.tolist()
    compute = [0.0] * problem.hardware.num_devices
    for node, chips in enumerate(on):
        for chip in chips:
            compute[chip] += float(problem.seconds[kind[chip], node])
    return compute


def link_seconds(problem: Problem, traffic: list[float]) -> list[float]:
    """[D] how long each link of a ring is busy with its [D] bytes."""
    links = problem.hardware.links
    return [b / links.bandwidth + links.latency_seconds if b > 0 else 0.0 for b in traffic]


def link_bytes(problem: Problem, home: list[int], on: list[set[int]]) -> list[float]:
    """[D] bytes from chip i to chip i + 1, none from the last: each tensor crosses every link up to
    its last consumer once, however many consumers it has on the way."""
    graph = problem.graph
    size: dict[tuple[int, int], float] = {}
    last: dict[tuple[int, int], int] = {}
    edges = zip(
        graph.senders.tolist(), graph.receivers.tolist(), graph.edge_output.tolist(), strict=True
    )
    for e, (u, v, output) in enumerate(edges):
        tensor = (u, output)
        size[tensor] = max(size.get(tensor, 0.0), float(problem.edge_bytes[e]))
        for chip in on[v] - on[u]:
            last[tensor] = max(last.get(tensor, 0), chip)
    traffic = [0.0] * problem.hardware.num_devices
    for (u, output), chip in last.items():
        for link in range(home[u], chip):
            traffic[link] += size[u, output]
    return traffic


def device_loads(problem: Problem, home: list[int]) -> list[float]:
    """[D] load of each device: its nodes' seconds; on an accelerator also the transfer of each
    distinct outside producer, once, and of each own node with an outside consumer, once."""
    kind, chips = problem.device_kind.tolist(), problem.hardware.devices
    load = [0.0] * len(chips)
    for node, d in enumerate(home):
        load[d] += float(problem.seconds[kind[d], node])
    moves: set[tuple[int, int]] = set()
    for u, v in zip(problem.graph.senders.tolist(), problem.graph.receivers.tolist(), strict=True):
        if home[u] != home[v]:
            moves |= {(u, home[u]), (u, home[v])}
    for node, d in moves:
        if not chips[d].is_cpu:
            load[d] += float(problem.transfer_seconds[node])
    return load


def latency_seconds(problem: Problem, home: list[int]) -> float:
    """Time of one sample: an accelerator starts when all its inputs are in host memory and ends
    after its load; CPU nodes run as soon as their own inputs are there."""
    chips, kind = problem.hardware.devices, problem.device_kind.tolist()
    load = device_loads(problem, home)
    piece = [len(chips) + n if chips[d].is_cpu else d for n, d in enumerate(home)]
    before: dict[int, set[int]] = {p: set() for p in piece}
    for u, v in zip(problem.graph.senders.tolist(), problem.graph.receivers.tolist(), strict=True):
        if piece[u] != piece[v]:
            before[piece[v]].add(piece[u])
    end: dict[int, float] = {}
    for p in TopologicalSorter(before).static_order():
        node = p - len(chips)
        takes = load[p] if node < 0 else float(problem.seconds[kind[home[node]], node])
        end[p] = takes + max((end[q] for q in before[p]), default=0.0)
    return max(end.values())
