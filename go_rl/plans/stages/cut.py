"""`cut_model`: operators of an ONNX model by stages, from the devices of a plan's nodes.

What a plan does not know - constants, changes of layout that are folded into their readers - goes
where it is read: constants into each stage, views with what they show. Between devices goes the
quantised tensor, so that a runtime joins the same operators as in the whole model: a
``QuantizeLinear`` stays with what it quantises, a ``DequantizeLinear`` is in each stage that reads
it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import networkx as nx
import onnx

from go_rl.core import OpGraph, Plan, PlanError
from go_rl.graphs.readers.onnx.order import captured_names, live_nodes, topological_nodes

NOWHERE = -1
"""Device of a constant, and stage of a tensor that no stage makes."""


@dataclass(frozen=True)
class CutModel:
    """Operators of a model in stages."""

    nodes: tuple[onnx.NodeProto, ...]
    """Operators that outputs of the model need, in an order in which they can run."""
    reads: tuple[frozenset[str], ...]
    """Names that each operator reads, those that its subgraphs capture included."""
    names: tuple[str, ...]
    """Unique name of each operator."""
    stages: tuple[tuple[int, ...], ...]
    """Operators of each stage, copies and constants included."""
    device: tuple[int, ...]
    """Device of each stage."""
    sender: Mapping[str, int]
    """Stage that sends each tensor to the others; `NOWHERE`: every stage makes it by itself."""


def cut_model(model: onnx.ModelProto, graph: OpGraph, plan: Plan, where: str) -> CutModel:
    """Return the stages of a model without local functions.

    A device has one stage where the devices can take turns, else several: see
    `go_rl.plans.run.segments`.

    Raises:
        PlanError: the plan spreads over devices what is one operator of the file, or has an
            operator that the file does not have.
        ReadError: the model's operators have no order.
    """
    stored = {t.name for t in model.graph.initializer}
    stored |= {s.values.name for s in model.graph.sparse_initializer}
    given = {v.name for v in model.graph.input} - stored
    ordered = list(topological_nodes(model.graph, stored | given, where))
    nodes = tuple(live_nodes(model.graph, ordered))
    reads = tuple(frozenset({i for i in n.input if i} | captured_names(n)) for n in nodes)
    maker = {o: i for i, node in enumerate(nodes) for o in node.output if o}
    above = [[maker[name] for name in names if name in maker] for names in reads]
    names = _names(nodes)
    placed = _placed(names, graph, plan)
    fed = _fed([not given.isdisjoint(each) for each in reads], above, placed)
    home = _home(nodes, maker, above, placed, fed)
    order, stage = _stages(above, home)
    members: list[set[int]] = [set() for _ in order]
    for number, at in enumerate(stage):
        if at != NOWHERE:
            members[at].add(number)
        for device in placed[number][1:]:
            members[_first(order, device)].add(number)
    for inside in members:
        _take_travellers(inside, nodes, above, home)
    sender = {name: stage[number] for name, number in maker.items()}
    return CutModel(
        nodes, reads, names, tuple(tuple(sorted(inside)) for inside in members), tuple(order),
        sender,
    )  # fmt: skip


def _names(nodes: Sequence[onnx.NodeProto]) -> tuple[str, ...]:
    """The name that the reader gives each operator, made unique."""
    counts, taken = Counter(n.name for n in nodes if n.name), Counter[str]()
    found = []
    for node in nodes:
        first = node.name if counts[node.name] == 1 else next(o for o in node.output if o)
        taken[first] += 1
        found.append(first if taken[first] == 1 else f"{first}#{taken[first]}")
    return tuple(found)


def _placed(names: Sequence[str], graph: OpGraph, plan: Plan) -> list[tuple[int, ...]]:
    """Devices of each operator: its own, then those of copies; none where the plan has no node."""
    number = {name: i for i, name in enumerate(names)}
    found: list[dict[int, str]] = [{} for _ in names]
    copies: list[set[int]] = [set() for _ in names]
    for node, name in enumerate(map(str, graph.names)):
        owner = _owner(name, number)
        if owner is None and not graph.is_fed[node]:
            raise PlanError(
                f"node {name!r} of the plan is no operator of the file, nor part of one"
            )
        if owner is not None:
            found[owner].setdefault(int(plan.device[node]), name)
            copies[owner].update(plan.replicas.get(node, ()))
    for name, devices in zip(names, found, strict=True):
        if len(devices) > 1:
            (one, first), (other, second) = list(devices.items())[:2]
            raise PlanError(
                f"operator {name!r} is one in the file, and the plan has its parts on several "
                f"devices: {first!r} on {one}, {second!r} on {other}; optimize again with the "
                f"parts of every operator together (--colocate operators), or with these alone "
                f"(--fixed '{name}*={one}')"
            )
    return [
        (*devices, *sorted(others - set(devices)))
        for devices, others in zip(found, copies, strict=True)
    ]


def _owner(name: str, number: Mapping[str, int]) -> int | None:
    """The operator that a node is, or is a part of: a step of an LSTM, a node of an If's branch."""
    while name not in number:
        name, slash, _ = name.rpartition("/")
        if not slash:
            return None
    return number[name]


def _fed(
    given: Sequence[bool], above: Sequence[Sequence[int]], placed: Sequence[Sequence[int]]
) -> list[bool]:
    """Whether each operator needs the model's inputs, or is placed by the plan.

    Args:
        given: whether it reads an input.
        above: operators whose results it reads.
        placed: its devices by the plan.
    """
    fed: list[bool] = []
    for reads, operators, devices in zip(given, above, placed, strict=True):
        fed.append(reads or bool(devices) or any(fed[i] for i in operators))
    return fed


def _home(
    nodes: Sequence[onnx.NodeProto],
    maker: Mapping[str, int],
    above: Sequence[Sequence[int]],
    placed: Sequence[Sequence[int]],
    fed: Sequence[bool],
) -> list[int]:
    """Device of each operator; `NOWHERE`: it follows from constants alone."""
    home = [devices[0] if devices else NOWHERE for devices in placed]
    fallback = max(home, default=0)
    for i, node in enumerate(nodes):  # views with what they show, and quantisers with it
        quantises = node.op_type == "QuantizeLinear"
        if quantises or (home[i] == NOWHERE and fed[i]):
            names = node.input[:1] if quantises else node.input
            shown = [home[maker[name]] for name in names if name in maker]
            home[i] = next((device for device in shown if device != NOWHERE), home[i])
    below: dict[int, list[int]] = defaultdict(list)
    for i, operators in enumerate(above):
        for operator in operators:
            below[operator].append(i)
    for i in reversed(range(len(nodes))):  # views of the model's own inputs
        if home[i] == NOWHERE and fed[i]:
            devices = [home[reader] for reader in below[i] if home[reader] != NOWHERE]
            home[i] = min(devices, default=fallback)
    return home


def _stages(above: Sequence[Sequence[int]], home: Sequence[int]) -> tuple[list[int], list[int]]:
    """Device of each stage, and the stage of each operator."""
    devices = nx.DiGraph()
    devices.add_nodes_from(set(home) - {NOWHERE})
    devices.add_edges_from(
        (home[u], home[v]) for v, us in enumerate(above) for u in us
        if home[u] != home[v] and NOWHERE not in (home[u], home[v])
    )  # fmt: skip
    try:
        order = list(nx.lexicographical_topological_sort(devices))
        keys = [(0, device) for device in order]
        level = [0] * len(home)
    except nx.NetworkXUnfeasible:  # the devices do not take turns
        level = [0] * len(home)
        for v, us in enumerate(above):
            before = (level[u] + (home[u] != home[v]) for u in us if home[u] != NOWHERE)
            level[v] = max(before, default=0)
        keys = sorted({(level[i], device) for i, device in enumerate(home) if device != NOWHERE})
    number = {key: i for i, key in enumerate(keys)}
    stage = [number.get((level[i], device), NOWHERE) for i, device in enumerate(home)]
    return [device for _, device in keys], stage


def _first(order: Sequence[int], device: int) -> int:
    """The first stage of a device; copies of a plan for a ring, where a device has one."""
    if device not in order:
        raise PlanError(f"the plan copies operators to device {device}, which has no other")
    return list(order).index(device)


def _take_travellers(
    inside: set[int],
    nodes: Sequence[onnx.NodeProto],
    above: Sequence[Sequence[int]],
    home: Sequence[int],
) -> None:
    """Add what the members of a stage need of operators without a device, and of those that widen
    quantised tensors."""
    open_ends = list(inside)
    while open_ends:
        for maker in above[open_ends.pop()]:
            travels = home[maker] == NOWHERE or nodes[maker].op_type == "DequantizeLinear"
            if travels and maker not in inside:
                inside.add(maker)
                open_ends.append(maker)
