"""The max-load and latency objectives and their optimum, written as the definitions read."""

import itertools

import networkx as nx
import numpy as np
from reference.ring_rules import classes_together

from go_rl.core import Problem, Status


def static_status(problem: Problem, device) -> Status:
    """The static rules, one after the other."""
    chips = problem.hardware.devices
    if any(not 0 <= d < len(chips) for d in device):
        return Status.ILLEGAL
    if not classes_together(problem, device):
        return Status.ILLEGAL
    if any(device[n] != d for n, d in problem.fixed.items()):
        return Status.ILLEGAL
    if any(np.isinf(problem.seconds[problem.device_kind[d], n]) for n, d in enumerate(device)):
        return Status.UNSUPPORTED
    for d, chip in enumerate(chips):
        held = sum(problem.weight_bytes[n] for n in range(len(device)) if device[n] == d)
        if problem.memory and not chip.is_cpu and held > chip.memory_bytes:
            return Status.OUT_OF_MEMORY
    return Status.OK


def accelerator_load(problem: Problem, device, d: int) -> float:
    """Compute, and one transfer for each distinct external producer and each exporting node."""
    graph = problem.graph
    edges = list(zip(graph.senders.tolist(), graph.receivers.tolist(), strict=True))
    own = [n for n in range(graph.num_nodes) if device[n] == d]
    feeding = {u for u, v in edges if device[v] == d and device[u] != d}
    sending = {u for u, v in edges if device[u] == d and device[v] != d}
    row = problem.seconds[problem.device_kind[d]]
    return sum(row[n] for n in own) + sum(problem.transfer_seconds[n] for n in feeding | sending)


def loads(problem: Problem, device) -> list[float]:
    """Load of each device."""
    result = []
    for d, chip in enumerate(problem.hardware.devices):
        row = problem.seconds[problem.device_kind[d]]
        own = [n for n in range(problem.graph.num_nodes) if device[n] == d]
        cpu = sum(row[n] for n in own)
        result.append(cpu if chip.is_cpu else accelerator_load(problem, device, d))
    return result


def max_load(problem: Problem, device) -> tuple[float, Status]:
    """Price one plan."""
    status = static_status(problem, device)
    return (max(loads(problem, device)) if status.ok else float("inf")), status


def optimum(problem: Problem, price) -> float:
    """The least value over all assignments; inf when none is legal."""
    chips, nodes = problem.hardware.num_devices, problem.graph.num_nodes
    plans = itertools.product(range(chips), repeat=nodes)
    return min(price(problem, np.array(plan, np.int16))[0] for plan in plans)


def latency(problem: Problem, device) -> tuple[float, Status]:
    """Price one plan by the longest path through the quotient graph."""
    status = static_status(problem, device)
    if not status.ok:
        return float("inf"), status
    pieces = quotient(problem, device)
    if not nx.is_directed_acyclic_graph(pieces):
        return float("inf"), Status.ILLEGAL
    end: dict[tuple[str, int], float] = {}
    for kind, i in nx.topological_sort(pieces):
        start = max((end[p] for p in pieces.predecessors((kind, i))), default=0.0)
        if kind == "cpu":
            load = problem.seconds[problem.device_kind[device[i]], i]
        else:
            load = accelerator_load(problem, device, i)
        end[kind, i] = start + float(load)
    return max(end.values()), Status.OK


def quotient(problem: Problem, device) -> nx.DiGraph:
    """Nodes of an accelerator as one piece, CPU nodes alone, and which of them feed which."""
    graph, chips = problem.graph, problem.hardware.devices
    part = [("cpu", n) if chips[d].is_cpu else ("chip", int(d)) for n, d in enumerate(device)]
    pieces = nx.DiGraph()
    pieces.add_nodes_from(part)
    for u, v in zip(graph.senders.tolist(), graph.receivers.tolist(), strict=True):
        if part[u] != part[v]:
            pieces.add_edge(part[u], part[v])
    return pieces
