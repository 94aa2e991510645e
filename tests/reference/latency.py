"""The latency objective, written as the definition reads."""

import networkx as nx
from reference.max_load import accelerator_load, static_status

from go_rl.core import Problem, Status


def latency(problem: Problem, device) -> tuple[float, Status]:
    """Price one plan by the longest path through the quotient graph."""
    status = static_status(problem, device)
    if not status.ok:
        return float("inf"), status
    graph, chips = problem.graph, problem.hardware.devices
    part = [("cpu", n) if chips[d].is_cpu else ("chip", int(d)) for n, d in enumerate(device)]
    quotient = nx.DiGraph()
    quotient.add_nodes_from(part)
    for u, v in zip(graph.senders.tolist(), graph.receivers.tolist(), strict=True):
        if part[u] != part[v]:
            quotient.add_edge(part[u], part[v])
    if not nx.is_directed_acyclic_graph(quotient):
        return float("inf"), Status.ILLEGAL
    end: dict[tuple[str, int], float] = {}
    for kind, i in nx.topological_sort(quotient):
        start = max((end[p] for p in quotient.predecessors((kind, i))), default=0.0)
        if kind == "cpu":
            load = problem.seconds[problem.device_kind[device[i]], i]
        else:
            load = accelerator_load(problem, device, i)
        end[kind, i] = start + float(load)
    return max(end.values()), Status.OK
