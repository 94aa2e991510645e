"""A second checker of plans: every rule of docs/objectives.md word by word, over sets and paths.

Shares no code with `go_rl.verify.check_plan`; values come from the other twins of this folder.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, pairwise

import networkx as nx
from reference import fusion, host_objectives, replay, ring
from reference.held import weights_held
from reference.ring_rules import classes_together, cone, no_chip_skipped, no_triangle

from go_rl.core import FREE, Objective, OpKind, Plan, Problem

FED = (OpKind.INPUT, OpKind.CONSTANT)
SLACK = 1e-9
Copies = Mapping[int, Sequence[int]]
Edges = list[tuple[int, int]]


def broken_rules(problem: Problem, plan: Plan) -> set[str]:
    """Names of the rules that a plan breaks; form first, kernels and memory last."""
    home = [int(d) for d in plan.device]
    devices = problem.hardware.num_devices
    if any(not 0 <= d < devices for d in [*home, *chain(*plan.replicas.values())]):
        return {"device-range"}
    if any(len({home[n], *cs}) <= len(cs) for n, cs in plan.replicas.items()):
        return {"copy-repeats"}
    broken = set(_placement_rules(problem, home, plan.replicas))
    if problem.objective is Objective.MAKESPAN and not broken:
        broken |= set(_kernel_rules(problem, plan, home))
        if not broken and problem.memory:
            room = [chip.memory_bytes for chip in problem.hardware.devices]
            peak = _replayed(problem, plan).peak
            if any(p > r * (1 + SLACK) for p, r in zip(peak, room, strict=True)):
                broken.add("memory")
    return broken


def value_of(problem: Problem, plan: Plan) -> float:
    """The objective of a plan that breaks no rule, seconds, by the twin of its simulator."""
    home = [int(d) for d in plan.device]
    if problem.objective is Objective.RING:
        present = [frozenset({h, *plan.replicas.get(n, ())}) for n, h in enumerate(home)]
        price = ring.price(problem, home, present)
        links = (ring.link_seconds(problem, size) for size in price.link_bytes)
        return max([*price.device_seconds, *links])
    if problem.objective is Objective.MAX_LOAD:
        return max(host_objectives.loads(problem, home))
    if problem.objective is Objective.LATENCY:
        return host_objectives.latency(problem, home)[0]
    return _replayed(problem, plan).seconds


def _replayed(problem: Problem, plan: Plan) -> replay.Step:
    priority = None if plan.priority is None else plan.priority.tolist()
    leader = None if plan.fusion_group is None else plan.fusion_group.tolist()
    return replay.replay(problem, plan.device.tolist(), priority, leader)


def _placement_rules(problem: Problem, home: list[int], replicas: Copies) -> Iterator[str]:
    graph = problem.graph
    edges = list(zip(graph.senders.tolist(), graph.receivers.tolist(), strict=True))
    on = [{h, *replicas.get(n, ())} for n, h in enumerate(home)]
    if not classes_together(problem, home):
        yield "colocation"
    if any(home[n] != d for n, d in problem.fixed.items()):
        yield "fixed"
    if any(not _runs(problem, n, c) for n, chips in enumerate(on) for c in chips):
        yield "supported"
    if problem.memory and any(
        _weights(problem, on, d) > chip.memory_bytes * (1 + SLACK)
        for d, chip in enumerate(problem.hardware.devices)
        if problem.objective is Objective.RING or not chip.is_cpu
    ):
        yield "weights"
    copied = [n for n, chips in replicas.items() if chips]
    if problem.objective is Objective.RING:
        yield from _ring_rules(problem, edges, home, on, copied)
    elif copied:
        yield "no-copies"
    if problem.objective is Objective.LATENCY:
        pieces = host_objectives.quotient(problem, home)
        if not nx.is_directed_acyclic_graph(pieces):
            yield "contiguous"


def _ring_rules(
    problem: Problem, edges: Edges, home: list[int], on: list[set[int]], copied: list[int]
) -> Iterator[str]:
    needs = [(u, v, c) for u, v in edges for c in on[v] - on[u]]
    if any(home[u] > c for u, v, c in needs if c == home[v]):
        yield "acyclic"
    if not no_chip_skipped(problem, set(home)):
        yield "no-skip"
    direct = {(home[u], c) for u, _, c in needs if home[u] < c}
    if not problem.rules.relay and not no_triangle(direct):
        yield "triangle"
    if copied and not problem.rules.replicate:
        yield "no-copies"
        return
    if any(home[u] > c for u, v, c in needs if c != home[v]):
        yield "copy-inputs"
    work = problem.seconds[0]
    total = sum(float(w) for w in work if w < float("inf"))
    for node in copied:
        colour = problem.graph.colocation[node]
        if colour != FREE and (problem.graph.colocation == colour).sum() > 1:
            yield "copy-class"
        if sum(float(work[n]) for n in cone(problem, node)) > 1e-3 * total * (1 + SLACK):
            yield "copy-cost"


def _runs(problem: Problem, node: int, device: int) -> bool:
    kind = OpKind(int(problem.graph.kind[node]))
    reads = node in problem.graph.receivers.tolist()
    if problem.objective is Objective.MAKESPAN and kind in FED and not reads:
        return True
    row = problem.hardware.kinds.index(problem.hardware.devices[device].kind)
    return float(problem.seconds[row, node]) < float("inf")


def _weights(problem: Problem, on: list[set[int]], device: int) -> float:
    return weights_held(problem, [node for node, chips in enumerate(on) if device in chips])


def _kernel_rules(problem: Problem, plan: Plan, home: list[int]) -> Iterator[str]:
    """The first kind of rule that kernels break, as the checker reports one only."""
    graph = problem.graph
    decided = {"schedule": plan.priority, "fusion": plan.fusion_group}
    if any(each is not None and name not in problem.decisions for name, each in decided.items()):
        yield "decision"
    elif plan.fusion_group is not None:
        leader = plan.fusion_group.tolist()
        members: dict[int, list[int]] = {}
        for node, lead in enumerate(leader):
            members.setdefault(lead, []).append(node)
        if any(lead != nodes[0] for lead, nodes in members.items()):
            yield "kernel-name"
        elif any(len({home[n] for n in nodes}) > 1 for nodes in members.values()):
            yield "kernel-device"
        elif not fusion.legal(graph, leader, home) or _apart_or_too_large(problem, members):
            yield "kernel"


def _apart_or_too_large(problem: Problem, members: dict[int, list[int]]) -> bool:
    graph = problem.graph
    plain = nx.Graph(zip(graph.senders.tolist(), graph.receivers.tolist(), strict=True))
    plain.add_nodes_from(range(graph.num_nodes))
    tensors = list(
        zip(
            graph.senders.tolist(),
            graph.edge_output.tolist(),
            graph.receivers.tolist(),
            strict=True,
        )
    )
    for nodes in members.values():
        inside = set(nodes)
        crossing = {(u, o) for u, o, v in tensors if (u in inside) != (v in inside)}
        if len(nodes) > 1 and (
            len(nodes) > 64 or len(crossing) > 96 or not nx.is_connected(plain.subgraph(nodes))
        ):
            return True
    return False


def improves_only(values: Sequence[float]) -> bool:
    """Whether a best-so-far curve falls strictly."""
    return all(b < a for a, b in pairwise(values))
